/** Copying, and the copy buttons inside rendered code blocks. */
import { t } from '../../i18n/core';

/** Puts `text` on the clipboard; false when the browser forbids it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

const SHOWN_MS = 1500;

/** Handles a click anywhere in rendered Markdown: on a code block's button it copies that block. */
export async function copyCodeBlock(event: MouseEvent): Promise<void> {
  const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>('button[data-copy]') : null;
  const code = button?.closest('.code')?.querySelector('code')?.textContent;
  if (!button || code === null || code === undefined) return;
  button.textContent = (await copyText(code)) ? t('copied') : t('notAllowed');
  setTimeout(() => {
    button.textContent = t('copy');
  }, SHOWN_MS);
}
