/**
 * An answer's blocks. What renders Markdown is a third of the chat's code and comes with the first answer; until it is there
 * an answer's words are shown as they were written.
 */
import { type Signal, signal } from '@preact/signals';
import { lang } from '../i18n';
import { escapeHtml } from './escape-html';
import type { Block, renderBlocks } from './markdown';

const render: Signal<typeof renderBlocks | null> = signal(null);
let loading: Promise<void> | null = null;

/** Fetches what renders Markdown, if it is not there. Never rejects: the next call tries again. */
export function loadMarkdown(): Promise<void> {
  loading ??= import('./markdown').then(
    (module) => {
      render.value = module.renderBlocks;
    },
    () => {
      loading = null;
    },
  );
  return loading;
}

/** The blocks of a text, taking those that did not change from `previous`. Follows the language, and what is loaded. */
export function blocksOf(text: string, previous: readonly Block[] = []): readonly Block[] {
  if (render.value) return render.value(text, previous);
  void loadMarkdown();
  if (text === '') return [];
  const html = `<p class="as-written">${escapeHtml(text)}</p>`;
  return [{ source: text, html, text: text.trim(), lang: lang.value }];
}
