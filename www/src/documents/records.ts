/** What is stored of documents: plain data, in IndexedDB. */

export type DocumentKind = 'text' | 'markdown' | 'pdf';

/** What sizes are counted in: the model's tokens, or characters where no model was loaded. */
export type SizeUnit = 'tokens' | 'characters';

/** A file that was read. The file itself is not kept, only its passages. */
export interface DocumentRecord {
  readonly id: string;
  /** The file's name. */
  readonly name: string;
  /** What it calls itself; its name where it does not. */
  readonly title: string;
  readonly kind: DocumentKind;
  readonly bytes: number;
  readonly added: number;
  /** Of a PDF. */
  readonly numPages: number | null;
  readonly numPassages: number;
  /** Passages that were left out because the document or another one has the same text. */
  readonly numDuplicates: number;
  readonly unit: SizeUnit;
  /** Of all its passages: the same document again is noticed under another name too. */
  readonly hash: string;
}

/** Where in a file a passage stands. */
export interface Place {
  /** The headings above it, outermost first. */
  readonly path: readonly string[];
  /** Of a PDF, from 1. */
  readonly page: number | null;
}

/** A piece of a document that is searched and cited as a whole. */
export interface PassageRecord extends Place {
  readonly id: string;
  readonly document: string;
  /** The file's name, so that a passage says where it is from by itself. */
  readonly file: string;
  /** In its document, from 1. */
  readonly index: number;
  /** The heading it stands under, or the document's title. */
  readonly title: string;
  readonly text: string;
  /** SHA-256 of its text, whatever its white space. */
  readonly hash: string;
  /** In the document's unit. */
  readonly size: number;
}

/** Why a file was not taken. */
export type DocumentProblemCode =
  | 'empty'
  | 'not_text'
  | 'too_large'
  | 'encrypted'
  | 'scanned'
  | 'broken'
  | 'stuck'
  | 'unreadable'
  | 'known'
  | 'too_many'
  | 'storage_full'
  | 'not_stored';

/** Thrown by what reads files; the code says what a visitor is told. */
export class DocumentError extends Error {
  constructor(
    readonly code: DocumentProblemCode,
    detail: string = code,
  ) {
    super(detail);
    this.name = 'DocumentError';
  }
}
