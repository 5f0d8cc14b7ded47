/** Colours code. The library and its languages come with the first code block that names one. */
import type { DOMPurify } from 'dompurify';
import type { HLJSApi } from 'highlight.js';

/** Longer code stays plain: colouring it would hold up the page. */
const MAX_LENGTH = 20_000;

interface Tools {
  readonly hljs: HLJSApi;
  readonly purify: DOMPurify;
}

let loading: Promise<Tools> | undefined;

async function load(): Promise<Tools> {
  const [{ hljs }, { default: purify }] = await Promise.all([import('./languages'), import('dompurify')]);
  return { hljs, purify };
}

/** Colours the code blocks inside `element`, once for each text. */
export async function highlightIn(element: Element): Promise<void> {
  const blocks = [...element.querySelectorAll<HTMLElement>('pre > code[class^="language-"]')];
  const todo = blocks.filter((code) => code.dataset.lit === undefined && (code.textContent ?? '').length <= MAX_LENGTH);
  if (todo.length === 0) return;
  loading ??= load();
  const tools = await loading.catch(() => {
    loading = undefined;
    return null;
  });
  for (const code of todo) {
    const language = code.className.slice('language-'.length).toLowerCase();
    if (!tools?.hljs.getLanguage(language)) continue;
    const { value } = tools.hljs.highlight(code.textContent ?? '', { language, ignoreIllegals: true });
    code.innerHTML = tools.purify.sanitize(value, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'] });
    code.dataset.lit = '';
  }
}
