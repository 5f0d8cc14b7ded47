/**
 * Reads the text of PDF files with PDF.js, which comes with the first one. It works in a worker of its own from this page's
 * origin, without `eval` and without fetching anything; the worker ends with the file, whatever the file did to it.
 */
import type { PDFDocumentProxy, TextItem } from 'pdfjs-dist/types/src/display/api';
import type { PdfItem } from './pdf-layout';
import { DocumentError } from './records';

export interface PdfText {
  /** What the file calls itself. */
  readonly title: string | null;
  readonly pages: readonly (readonly PdfItem[])[];
}

export interface PdfOptions {
  readonly signal: AbortSignal;
  readonly onPage: (done: number, total: number) => void;
  /** Longest time without a page: a damaged file can keep a worker busy for ever. */
  readonly patienceMs?: number;
}

export const MAX_PAGES = 5000;
const PATIENCE_MS = 60_000;

/** Gives PDF.js the files that it asks for by name; all others it does without. */
class LocalFiles {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    if (kind !== 'cMapUrl') throw new Error(`${filename} is not there`);
    const { cmapBytes } = await import('./cmaps');
    return cmapBytes(filename);
  }
}

/** The text of all pages; rejects with a DocumentError, or as `signal` was aborted. */
export async function readPdf(bytes: Uint8Array, options: PdfOptions): Promise<PdfText> {
  const [{ getDocument, PDFWorker }, { default: Port }] = await Promise.all([
    import('pdfjs-dist/legacy/build/pdf.mjs'),
    import('pdfjs-dist/legacy/build/pdf.worker.min.mjs?worker'),
  ]);
  options.signal.throwIfAborted();
  const port = new Port();
  const watch = new Watch(port, options);
  try {
    const worker = PDFWorker.create({ port });
    const task = getDocument({
      data: bytes,
      worker,
      isEvalSupported: false,
      useWorkerFetch: false,
      useWasm: false,
      useSystemFonts: true,
      cMapUrl: 'cmaps/',
      BinaryDataFactory: LocalFiles,
      // Errors only: what a file does wrong is not this page's.
      verbosity: 0,
    });
    return await watch.orFail(readPages(task.promise, watch, options));
  } catch (error) {
    throw toDocumentError(error);
  } finally {
    watch.end();
    port.terminate();
  }
}

async function readPages(opening: Promise<PDFDocumentProxy>, watch: Watch, options: PdfOptions): Promise<PdfText> {
  const pdf = await opening;
  if (pdf.numPages > MAX_PAGES) throw new DocumentError('too_large', `${pdf.numPages} pages`);
  const { info } = await pdf.getMetadata().catch(() => ({ info: {} }));
  const pages: PdfItem[][] = [];
  for (let number = 1; number <= pdf.numPages; number += 1) {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    pages.push(items.filter((item): item is TextItem => 'str' in item));
    page.cleanup();
    watch.goOn();
    options.onPage(number, pdf.numPages);
  }
  const title = (info as { Title?: unknown }).Title;
  return { title: typeof title === 'string' && title.trim() !== '' ? title.trim() : null, pages };
}

/** Fails when the worker does, when nothing happens for too long, and when the visitor cancels. */
class Watch {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private fail: (error: unknown) => void = () => undefined;
  private readonly failed = new Promise<never>((_, reject) => {
    this.fail = reject;
  });

  constructor(
    port: Worker,
    private readonly options: PdfOptions,
  ) {
    port.addEventListener('error', () => this.fail(new DocumentError('unreadable', 'the PDF worker failed')));
    options.signal.addEventListener('abort', this.onAbort);
    this.failed.catch(() => undefined);
    this.goOn();
  }

  private readonly onAbort = (): void => this.fail(this.options.signal.reason);

  goOn(): void {
    clearTimeout(this.timer);
    const patienceMs = this.options.patienceMs ?? PATIENCE_MS;
    this.timer = setTimeout(() => this.fail(new DocumentError('stuck', `${patienceMs} ms`)), patienceMs);
  }

  orFail<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.failed]);
  }

  end(): void {
    clearTimeout(this.timer);
    this.options.signal.removeEventListener('abort', this.onAbort);
  }
}

/** PDF.js names its errors; what is not one of them is a file that it cannot make sense of. */
function toDocumentError(error: unknown): unknown {
  if (error instanceof DocumentError || !(error instanceof Error) || error.name === 'AbortError') return error;
  if (error.name === 'PasswordException') return new DocumentError('encrypted', error.message);
  return new DocumentError('broken', error.message);
}
