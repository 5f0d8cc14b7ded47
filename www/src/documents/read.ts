/** A file to the blocks of a document, whatever its kind. */
import { decodeText } from './decode';
import { pdfBlocks } from './pdf-layout';
import { markdownBlocks, plainBlocks, titleOf } from './plain';
import { DocumentError, type DocumentKind } from './records';
import type { Block } from './split';

/** Largest text, of about a thousand pages. */
export const MAX_TEXT_BYTES = 8_000_000;
/** Largest PDF; most of it is pictures as a rule. */
export const MAX_PDF_BYTES = 64_000_000;

/** What a file says. */
export interface ReadFile {
  readonly kind: DocumentKind;
  readonly title: string;
  readonly blocks: readonly Block[];
  readonly numPages: number | null;
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  readonly onPage: (done: number, total: number) => void;
}

/** Largest file of this name. */
export function maxBytes(name: string): number {
  return isPdfName(name) ? MAX_PDF_BYTES : MAX_TEXT_BYTES;
}

export const isPdfName = (name: string): boolean => /\.pdf$/i.test(name);

/** Reads a file; rejects with a DocumentError that says why it cannot be. */
export async function readFile(file: File, options: ReadOptions): Promise<ReadFile> {
  if (file.size === 0) throw new DocumentError('empty');
  if (file.size > maxBytes(file.name)) throw new DocumentError('too_large');
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch (error) {
    throw new DocumentError('unreadable', String(error));
  }
  options.signal.throwIfAborted();
  // By its first bytes: a name says little.
  if (isPdf(bytes)) return readPdfFile(file.name, bytes, options);
  if (isPdfName(file.name)) throw new DocumentError('broken', 'not a PDF file');
  const text = decodeText(bytes);
  if (text.trim() === '') throw new DocumentError('empty');
  const isMarkdown = /\.(md|markdown|mdown|mkd)$/i.test(file.name) || file.type === 'text/markdown';
  const blocks = isMarkdown ? markdownBlocks(text) : plainBlocks(text);
  return { kind: isMarkdown ? 'markdown' : 'text', title: titleOf(blocks) ?? file.name, blocks, numPages: null };
}

async function readPdfFile(name: string, bytes: Uint8Array, options: ReadOptions): Promise<ReadFile> {
  const { readPdf } = await import('./pdf');
  const { title, pages } = await readPdf(bytes, options);
  const blocks = pdfBlocks(pages);
  // Pages without a letter are pictures of pages.
  if (blocks.every((block) => block.text.trim() === '')) throw new DocumentError('scanned');
  return { kind: 'pdf', title: title ?? titleOf(blocks) ?? name, blocks, numPages: pages.length };
}

/** Some files have a few bytes in front of the mark. */
function isPdf(bytes: Uint8Array): boolean {
  return new TextDecoder('latin1').decode(bytes.subarray(0, 1024)).includes('%PDF-');
}
