/** Plain text and Markdown to blocks. */
import { Lexer, type Token, type Tokens } from 'marked';
import type { Block } from './split';

const text = (words: string): Block => ({ kind: 'text', text: words, page: null });

/** A line of its own that names what follows: `Chapter 3`, `2.1 Returns`, `第三章 退货`. */
const CHAPTER = /^(?:chapter\s+[\divxlc]+\b|part\s+[\divxlc]+\b|第[\d一二三四五六七八九十百零〇两]+[章节回部篇卷编])/iu;
const NUMBERED = /^(\d+(?:\.\d+){0,4})\.?\s+\p{L}/u;
const MAX_HEADING = 80;

/** Plain text: paragraphs are parted by empty lines, or are lines where there are none. */
export function plainBlocks(contents: string): Block[] {
  const whole = contents.replace(/\r\n?/g, '\n').trim();
  const paragraphs = whole.split(/\n[ \t\u3000]*\n+/);
  return (paragraphs.length > 1 ? paragraphs : whole.split('\n')).map(
    (paragraph) => headingOf(paragraph.trim()) ?? text(paragraph),
  );
}

function headingOf(line: string): Block | null {
  if (line.includes('\n') || line.length > MAX_HEADING || /[.!?。！？;；:：,，]$/.test(line)) return null;
  if (CHAPTER.test(line)) return { kind: 'heading', level: 1, text: line, page: null };
  const numbers = NUMBERED.exec(line)?.[1];
  return numbers ? { kind: 'heading', level: numbers.split('.').length, text: line, page: null } : null;
}

/** Markdown, as it is written: what is kept of it is its source, which models read well. */
export function markdownBlocks(contents: string): Block[] {
  const source = contents
    .replace(/\r\n?/g, '\n')
    // What tools put in front of the text, and pictures inside of it.
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replace(/\(data:[^)\s]*\)/g, '()');
  try {
    return new Lexer({ gfm: true }).lex(source).flatMap(toBlocks);
  } catch {
    // Nested deeper than the parser's stack.
    return plainBlocks(source);
  }
}

function toBlocks(token: Token): Block[] {
  switch (token.type) {
    case 'heading':
      return [{ kind: 'heading', level: (token as Tokens.Heading).depth, text: words(token), page: null }];
    case 'space':
    case 'hr':
    case 'def':
      return [];
    case 'code':
    case 'table':
    case 'list':
      return [{ kind: 'lines', text: token.raw, page: null }];
    case 'html':
      return /^\s*<!--/.test(token.raw) ? [] : [text(token.raw)];
    default:
      return [text(token.raw)];
  }
}

/** The words of a heading, without the signs around them. */
function words(token: Token): string {
  const children = 'tokens' in token ? (token.tokens ?? []) : [];
  if (children.length > 0) return children.map(words).join('');
  return 'text' in token ? String(token.text) : '';
}

/** The title that a document gives itself: its first heading, if it is of the first level. */
export function titleOf(blocks: readonly Block[]): string | null {
  const first = blocks.find((block) => block.text.trim() !== '');
  return first?.kind === 'heading' && first.level === 1 ? first.text.trim() : null;
}
