/**
 * The text of PDF pages to blocks. A PDF knows glyphs at places and no paragraphs: lines are set apart by their distance, and
 * headings by their size, against the size that most of the document has.
 */
import type { Block } from './split';

/** A run of text on a page, as PDF.js reports it. */
export interface PdfItem {
  readonly str: string;
  /** The matrix that places it: scale in the first four numbers, then x and y from the page's lower start corner. */
  readonly transform: readonly number[];
  readonly hasEOL: boolean;
}

interface Line {
  readonly text: string;
  /** Height of its letters. */
  readonly size: number;
  readonly x: number;
  readonly y: number;
}

/** Letters this much larger than most make a heading. */
const HEADING_SCALE = 1.15;
const MAX_HEADING = 120;
/** A distance between lines of more than this many sizes parts paragraphs. */
const PARAGRAPH_GAP = 1.75;
/** So often, and on half of the pages, a line at an edge is a page's head or foot. */
const MIN_REPEATS = 3;

/** Blocks of a whole document. */
export function pdfBlocks(pages: readonly (readonly PdfItem[])[]): Block[] {
  const lines = withoutRunningHeads(pages.map(linesOf));
  const body = bodySize(lines.flat());
  const isHeading = ({ size, text }: Line): boolean => size >= body * HEADING_SCALE && text.length <= MAX_HEADING;
  const sizes = [...new Set(lines.flat().filter(isHeading).map(roundSize))].sort((a, b) => b - a);
  return lines.flatMap((page, index) => pageBlocks(page, index + 1, isHeading, sizes));
}

function pageBlocks(
  lines: readonly Line[],
  page: number,
  isHeading: (line: Line) => boolean,
  sizes: readonly number[],
): Block[] {
  const blocks: Block[] = [];
  let before: Line | null = null;
  for (const line of lines) {
    const last = blocks.at(-1);
    const level = isHeading(line) ? Math.min(6, sizes.indexOf(roundSize(line)) + 1) : 0;
    const lastLevel = last?.kind === 'heading' ? last.level : 0;
    if (last && before && level === lastLevel && !startsParagraph(line, before)) {
      blocks[blocks.length - 1] = { ...last, text: join(last.text, line.text) };
    } else if (level > 0) blocks.push({ kind: 'heading', level, text: line.text, page });
    else blocks.push({ kind: 'text', text: line.text, page });
    before = line;
  }
  return blocks;
}

function startsParagraph(line: Line, before: Line): boolean {
  const size = Math.max(line.size, before.size);
  const gap = before.y - line.y;
  const isSentenceEnd = /[.!?:。！？：]["'”’)）]?$/.test(before.text);
  // Upwards is the next column, where a sentence may go on.
  if (gap < 0) return isSentenceEnd;
  return gap > PARAGRAPH_GAP * size || (isSentenceEnd && line.x > before.x + size);
}

/** Two lines as one: without a hyphen at the end, and without a space where the script has none. */
function join(first: string, second: string): string {
  if (/\p{Ll}-$/u.test(first) && /^\p{Ll}/u.test(second)) return first.slice(0, -1) + second;
  const isWide = WIDE.test(first.at(-1) ?? '') && WIDE.test(second.at(0) ?? '');
  return isWide ? first + second : `${first} ${second}`;
}

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}　-〿＀-￯]/u;

function linesOf(items: readonly PdfItem[]): Line[] {
  const lines: Line[] = [];
  let open: Line | null = null;
  const close = (): void => {
    const text = open?.text.replace(/\s+/g, ' ').trim();
    if (open && text) lines.push({ ...open, text });
    open = null;
  };
  for (const { str, transform, hasEOL } of items) {
    const [a = 0, b = 0, c = 0, d = 0, x = 0, y = 0] = transform;
    const size = Math.hypot(c, d) || Math.hypot(a, b);
    const line: Line | null = open;
    if (line !== null && str.trim() !== '' && Math.abs((line as Line).y - y) > 0.6 * size) close();
    if (open === null) open = { text: str, size: str.trim() === '' ? 0 : size, x, y };
    else {
      const now: Line = open;
      open = { ...now, text: now.text + str, size: str.trim() === '' ? now.size : Math.max(now.size, size) };
    }
    if (hasEOL) close();
  }
  close();
  return lines;
}

const roundSize = ({ size }: Line): number => Math.round(size * 2) / 2;

/** The size that most letters have. */
function bodySize(lines: readonly Line[]): number {
  const counts = new Map<number, number>();
  for (const line of lines) counts.set(roundSize(line), (counts.get(roundSize(line)) ?? 0) + line.text.length);
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most?.[0] ?? 0;
}

/** Pages without the lines that stand at the same edge of most of them, but for their numbers. */
function withoutRunningHeads(pages: readonly (readonly Line[])[]): (readonly Line[])[] {
  const nameOf = (line: Line | undefined): string => line?.text.replace(/\d+/g, '#') ?? '';
  const repeated = (at: 0 | -1): Set<string> => {
    const counts = new Map<string, number>();
    for (const lines of pages) counts.set(nameOf(lines.at(at)), (counts.get(nameOf(lines.at(at))) ?? 0) + 1);
    const least = Math.max(MIN_REPEATS, pages.length / 2);
    return new Set([...counts].filter(([, count]) => count >= least).map(([name]) => name));
  };
  const [heads, feet] = [repeated(0), repeated(-1)];
  return pages.map((lines) =>
    lines.filter((line, index) => {
      const isEdge = (index === 0 && heads.has(nameOf(line))) || (index === lines.length - 1 && feet.has(nameOf(line)));
      return !isEdge;
    }),
  );
}
