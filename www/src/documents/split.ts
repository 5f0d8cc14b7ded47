/**
 * Blocks of a document to passages: never across a heading or a page, at most as long as asked, cut between paragraphs, then
 * sentences, then words. Sizes are what `measure` counts, of each piece once; a passage's size is the sum of its pieces'.
 */
import type { Place } from './records';

/** A piece of a document's structure, in reading order. */
export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string; readonly page: number | null }
  /** `lines` is text whose lines belong together: code, tables, lists. */
  | { readonly kind: 'text' | 'lines'; readonly text: string; readonly page: number | null };

/** A passage before it has a name. */
export interface Draft extends Place {
  readonly text: string;
  readonly size: number;
}

/** Sizes of texts, in tokens or characters. */
export type Measure = (texts: readonly string[]) => Promise<readonly number[]>;

export interface SplitOptions {
  /** Largest size of a passage. */
  readonly limit: number;
  readonly measure: Measure;
}

interface Piece {
  readonly text: string;
  readonly size: number;
}

/** Splits a document. A text of headings alone is split as text. */
export async function splitBlocks(blocks: readonly Block[], options: SplitOptions): Promise<Draft[]> {
  const hasText = blocks.some(({ kind, text }) => kind !== 'heading' && text.trim() !== '');
  const all = hasText ? blocks : blocks.map((block): Block => ({ kind: 'text', text: block.text, page: block.page }));
  const sizes = await options.measure(all.map(({ text }) => text.trim()));
  const builder = new Builder(options.limit);
  for (const [index, block] of all.entries()) {
    const text = block.text.trim();
    if (text === '') continue;
    if (block.kind === 'heading') {
      builder.heading(block.level, text);
      continue;
    }
    const size = sizes[index] ?? 0;
    const pieces = size <= options.limit ? [{ text, size }] : await divide(text, block.kind === 'lines', options);
    for (const piece of pieces) builder.add(piece, block.page);
  }
  return builder.end();
}

/** Collects pieces until the next would be too much. */
class Builder {
  private readonly drafts: Draft[] = [];
  private readonly headings: { level: number; text: string }[] = [];
  private pieces: Piece[] = [];
  private page: number | null = null;

  constructor(private readonly limit: number) {}

  heading(level: number, text: string): void {
    this.flush();
    while ((this.headings.at(-1)?.level ?? 0) >= level) this.headings.pop();
    this.headings.push({ level, text: text.replace(/\s+/g, ' ') });
  }

  add(piece: Piece, page: number | null): void {
    const size = this.pieces.reduce((sum, one) => sum + one.size, 0);
    if (page !== this.page || size + piece.size > this.limit) this.flush();
    this.page = page;
    this.pieces.push(piece);
  }

  private flush(): void {
    if (this.pieces.length > 0) {
      this.drafts.push({
        text: this.pieces.map(({ text }) => text).join('\n\n'),
        size: this.pieces.reduce((sum, { size }) => sum + size, 0),
        path: this.headings.map(({ text }) => text),
        page: this.page,
      });
    }
    this.pieces = [];
  }

  end(): Draft[] {
    this.flush();
    return this.drafts;
  }
}

/** A text that is too large, as pieces that are not: whole lines or sentences as far as possible. */
async function divide(text: string, byLines: boolean, options: SplitOptions): Promise<Piece[]> {
  const units = byLines ? text.split(/(?<=\n)/) : sentencesOf(text);
  if (units.length === 1) return byLines ? divide(text, false, options) : cut(text, options);
  const sizes = await options.measure(units);
  const pieces: Piece[] = [];
  let open: Piece = { text: '', size: 0 };
  const close = (): void => {
    if (open.text.trim() !== '') pieces.push({ text: open.text.trim(), size: open.size });
    open = { text: '', size: 0 };
  };
  for (const [index, unit] of units.entries()) {
    const size = sizes[index] ?? 0;
    if (open.size + size > options.limit) close();
    if (size <= options.limit) open = { text: open.text + unit, size: open.size + size };
    else pieces.push(...(byLines ? await divide(unit, false, options) : await cut(unit, options)));
  }
  close();
  return pieces;
}

/** One sentence that is too large: halves, between words where there are any. */
async function cut(text: string, options: SplitOptions): Promise<Piece[]> {
  const whole = text.trim();
  if (whole === '') return [];
  const [size = 0] = await options.measure([whole]);
  if (size <= options.limit || [...whole].length < 2) return [{ text: whole, size }];
  const middle = Math.floor(whole.length / 2);
  const space = whole.lastIndexOf(' ', middle);
  let at = space > whole.length / 4 ? space : middle;
  // Not between the halves of a character.
  if (/[\uDC00-\uDFFF]/.test(whole[at] ?? '')) at += 1;
  return [...(await cut(whole.slice(0, at), options)), ...(await cut(whole.slice(at), options))];
}

const segmenter =
  typeof Intl.Segmenter === 'function' ? new Intl.Segmenter(undefined, { granularity: 'sentence' }) : null;

function sentencesOf(text: string): string[] {
  if (!segmenter) return text.split(/(?<=[.!?]\s|[。！？])/u);
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Characters, of which a wide one counts as four: it is about a token, and so are four narrow ones. */
export const measureCharacters: Measure = (texts) =>
  Promise.resolve(texts.map((text) => text.length + 3 * (text.match(WIDE)?.length ?? 0)));

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu;
