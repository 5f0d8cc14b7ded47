/** Numbers in brackets that cite a source become buttons. All other text, and numbers that nobody gave out, stay as they are. */

/** `[3]`, `[3, 4]` and `【3】`, as models trained on Chinese write it. */
const CITATION = /[[【](\d{1,4}(?:\s*[,，、;]\s*\d{1,4})*)[\]】]/g;

/** A text cut at its citations: words, or the numbers of one citation. */
export type CitedPart = string | readonly number[];

/** Cuts a text at the citations all of whose numbers are known. */
export function splitCitations(text: string, isKnown: (number: number) => boolean): CitedPart[] {
  const parts: CitedPart[] = [];
  let end = 0;
  for (const match of text.matchAll(CITATION)) {
    const numbers = (match[1] ?? '').split(/\D+/).map(Number);
    if (!numbers.every(isKnown)) continue;
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push(numbers);
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/** The numbers that an answer cites, each once, in its order. */
export function citedNumbers(text: string, isKnown: (number: number) => boolean): number[] {
  return [...new Set(splitCitations(text, isKnown).flatMap((part) => (typeof part === 'string' ? [] : part)))];
}

export interface CitationOptions {
  readonly isKnown: (number: number) => boolean;
  /** What a button is called. */
  readonly labelOf: (number: number) => string;
  readonly onOpen: (number: number) => void;
}

/** Puts buttons into an answer's elements, where its text cites; never into code, links or other buttons. */
export function decorateCitations(element: HTMLElement, options: CitationOptions): void {
  // Those from before may be called something else by now.
  for (const button of element.querySelectorAll<HTMLButtonElement>('button.cite')) {
    nameButton(button, options.labelOf(Number(button.dataset.cite)));
  }
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    if (!node.parentElement?.closest('a, button, code, pre')) texts.push(node);
  }
  for (const node of texts) {
    const parts = splitCitations(node.data, options.isKnown);
    if (parts.every((part) => typeof part === 'string')) continue;
    node.replaceWith(
      ...parts.flatMap((part): (string | Node)[] =>
        typeof part === 'string' ? [part] : part.map((number) => citationButton(number, options)),
      ),
    );
  }
}

function citationButton(number: number, { labelOf, onOpen }: CitationOptions): HTMLButtonElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'cite';
  button.textContent = String(number);
  nameButton(button, labelOf(number));
  button.setAttribute('aria-haspopup', 'dialog');
  button.dataset.cite = String(number);
  button.addEventListener('click', () => onOpen(number));
  return button;
}

function nameButton(button: HTMLButtonElement, label: string): void {
  button.title = label;
  button.setAttribute('aria-label', label);
}
