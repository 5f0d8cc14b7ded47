/**
 * One file of a model on a server, read by ranges. Reads that follow one another share one answer, so a whole load is a
 * handful of requests; a failed range is tried again from the byte it had reached.
 */

import { ByteStream, request } from './byte-stream.js';
import { PagewiseError } from './errors.js';
import { type NetworkEnvironment, TransientError, withRetries } from './retry.js';
import { changedError, isOtherEtag, WholeDownload } from './whole-download.js';

/** Bytes of the first request, which also tells the file's size. */
export const FIRST_BYTES = 256 * 1024;
/** Bytes that a request asks for when it continues where the last read ended. */
const READ_AHEAD_BYTES = 64 * 1024 ** 2;
/** A gap up to this size (alignment, a small tensor) is read and dropped instead of starting a new request. */
const MAX_SKIP_BYTES = 256 * 1024;

/** A part of a model that can be read. */
export interface Part {
  /** Size in bytes. */
  length(): Promise<number>;
  /** Exactly `length` bytes from `offset`. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Ends everything in progress. */
  close(): void;
}

interface OpenFile {
  url: string;
  length: number;
  etag: string | null;
  /** The first bytes; all of them when `whole` is absent and the file is small. */
  head: Uint8Array;
  /** Set when the server cannot send ranges. */
  whole?: WholeDownload;
}

/** A file that is being opened: a broken first answer is gone on with, like any other. */
interface Opening {
  /** Set once the server has told what it has. */
  file?: OpenFile;
  /** Bytes of the head that are there. */
  filled: number;
}

/** A {@link Part} on a server. */
export class HttpPart implements Part {
  readonly #urls: readonly string[];
  readonly #headers: Record<string, string>;
  readonly #environment: NetworkEnvironment;
  readonly #abort = new AbortController();
  #file: Promise<OpenFile> | undefined;
  #stream: ByteStream | undefined;
  /** Offset after the last byte that the stream was asked for. */
  #streamEnd = 0;
  /** Offset after the last byte that was read. */
  #lastEnd = -1;
  /** Reads take turns: they share the stream. */
  #turn: Promise<unknown> = Promise.resolve();

  /** `urls` name the same file; the first that answers is used. */
  constructor(urls: readonly string[], headers: Record<string, string>, environment: NetworkEnvironment) {
    this.#urls = urls;
    this.#headers = headers;
    this.#environment = environment;
  }

  async length(): Promise<number> {
    return (await this.#open()).length;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const file = await this.#open();
    if (offset + length > file.length) {
      const message = `${file.url} has ${file.length} bytes, ${offset + length} are needed: the file is cut short`;
      throw new PagewiseError('corrupt_model', message, { url: file.url, offset });
    }
    if (offset + length <= file.head.length) return file.head.slice(offset, offset + length);
    if (file.whole !== undefined) return file.whole.read(offset, length);

    const turn = this.#turn.then(() => this.#readRange(file, offset, length));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #readRange(file: OpenFile, offset: number, length: number): Promise<Uint8Array> {
    const isSequential = offset === this.#lastEnd;
    const out = new Uint8Array(length);
    let filled = 0;
    await withRetries(
      this.#environment,
      () => filled,
      async () => {
        while (filled < length) {
          const at = offset + filled;
          const stream = await this.#streamAt(file, at, length - filled, isSequential);
          const piece = await stream.pull(length - filled).catch((error: unknown) => {
            this.#closeStream();
            throw error;
          });
          if (piece === undefined) {
            this.#closeStream();
            throw new TransientError('network', `${file.url} sent too few bytes at byte ${at}`, {
              url: file.url,
              offset: at,
            });
          }
          out.set(piece, filled);
          filled += piece.length;
        }
      },
    );
    this.#lastEnd = offset + length;
    return out;
  }

  close(): void {
    this.#abort.abort();
    this.#closeStream();
  }

  #closeStream(): void {
    this.#stream?.close();
    this.#stream = undefined;
  }

  /** The open answer when it can go on at `offset`, else a new one. */
  async #streamAt(file: OpenFile, offset: number, length: number, isSequential: boolean): Promise<ByteStream> {
    const open = this.#stream;
    const gap = open === undefined ? -1 : offset - open.position;
    const goesOn = gap >= 0 && gap <= MAX_SKIP_BYTES && offset < this.#streamEnd;
    if (open !== undefined && goesOn && (await skip(open, gap))) return open;
    this.#closeStream();
    const ahead = isSequential ? Math.max(length, READ_AHEAD_BYTES) : length;
    const end = Math.min(offset + ahead, file.length);
    const response = await this.#get(file.url, offset, end);
    checkRange(file, response, offset);
    this.#stream = new ByteStream(this.#environment, file.url, response, offset);
    this.#streamEnd = end;
    return this.#stream;
  }

  #get(url: string, offset: number, end: number): Promise<Response> {
    const headers = { ...this.#headers, Range: `bytes=${offset}-${end - 1}` };
    return request(this.#environment, url, { headers, signal: this.#abort.signal }, offset);
  }

  #open(): Promise<OpenFile> {
    this.#file ??= this.#openFirst();
    return this.#file;
  }

  async #openFirst(): Promise<OpenFile> {
    let failure: unknown;
    for (const url of this.#urls) {
      const opening: Opening = { filled: 0 };
      try {
        return await withRetries(
          this.#environment,
          () => opening.filled,
          () => this.#openUrl(url, opening),
        );
      } catch (error) {
        if (this.#abort.signal.aborted) throw error;
        failure ??= error;
      }
    }
    throw failure;
  }

  async #openUrl(url: string, opening: Opening): Promise<OpenFile> {
    const from = opening.filled;
    const response = await this.#get(url, from, opening.file?.head.length ?? FIRST_BYTES);
    opening.file ??= await this.#openAnswer(url, response);
    const { file } = opening;
    if (file.whole !== undefined) return file;
    checkRange(file, response, from);
    await fill(opening, file, new ByteStream(this.#environment, url, response, from));
    checkIsGguf(url, file.head, response);
    return file;
  }

  /** What the first answer tells; the head is still empty, unless the answer is the whole file. */
  async #openAnswer(url: string, response: Response): Promise<OpenFile> {
    if (response.status === 416) throw new PagewiseError('corrupt_model', `${url} is empty`, { url });
    const etag = response.headers.get('etag');
    if (response.status !== 206) {
      const options = { environment: this.#environment, url, headers: this.#headers, signal: this.#abort.signal };
      const whole = new WholeDownload(options, response);
      const head = await whole.read(0, 16);
      checkIsGguf(url, head, response);
      return { url, length: await whole.length(), etag, head, whole };
    }
    const length = totalOf(response) ?? (await this.#lengthByHead(url));
    return { url, length, etag, head: new Uint8Array(Math.min(FIRST_BYTES, length)) };
  }

  /** For servers that do not let scripts of other origins see `Content-Range`. */
  async #lengthByHead(url: string): Promise<number> {
    const init = { method: 'HEAD', headers: this.#headers, signal: this.#abort.signal };
    const length = Number((await request(this.#environment, url, init, 0)).headers.get('content-length') ?? Number.NaN);
    if (Number.isSafeInteger(length) && length > 0) return length;
    const message = `${url} does not tell its size: its server has to send Access-Control-Expose-Headers: Content-Range`;
    throw new PagewiseError('network', message, { url });
  }
}

/** Drops `gap` bytes; false when the answer ends or breaks before. */
async function skip(stream: ByteStream, gap: number): Promise<boolean> {
  try {
    for (let left = gap; left > 0; ) {
      const piece = await stream.pull(left);
      if (piece === undefined) return false;
      left -= piece.length;
    }
    return true;
  } catch (error) {
    if (error instanceof TransientError) return false;
    throw error;
  }
}

/** Reads the rest of the head; `opening.filled` says how far that came. */
async function fill(opening: Opening, { url, head }: OpenFile, stream: ByteStream): Promise<void> {
  while (opening.filled < head.length) {
    const at = opening.filled;
    const piece = await stream.pull(head.length - at);
    if (piece === undefined) {
      throw new TransientError('network', `${url} sent too few bytes at byte ${at}`, { url, offset: at });
    }
    head.set(piece, at);
    opening.filled += piece.length;
  }
  stream.close();
}

/** Total size from `Content-Range: bytes 0-99/1234`. */
export function totalOf(response: Response): number | undefined {
  const total = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1];
  return total === undefined ? undefined : Number(total);
}

/** Refuses an answer that is not the range that was asked for, or of another version of the file. */
function checkRange(file: OpenFile, response: Response, offset: number): void {
  const { url } = file;
  const start = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1];
  if (response.status !== 206 || (start !== undefined && Number(start) !== offset)) {
    void response.body?.cancel();
    const message = `${url} answered ${response.status} with another range than asked at byte ${offset}`;
    throw new TransientError('network', message, { url, offset, status: response.status });
  }
  const total = totalOf(response);
  // Servers without versions tell of another file by its size at least.
  if (isOtherEtag(response, file.etag) || (total !== undefined && total !== file.length)) {
    void response.body?.cancel();
    throw changedError(url, offset);
  }
}

/** Refuses what servers send instead of a model: pages, and Git LFS pointers. */
export function checkIsGguf(url: string, head: Uint8Array, response: Response): void {
  const text = String.fromCharCode(...head.subarray(0, 16));
  if (text.startsWith('GGUF')) return;
  const type = response.headers.get('content-type') ?? '';
  let what: string | undefined;
  if (/^\s*</.test(text) || type.startsWith('text/html'))
    what = 'a web page, not a GGUF file: the address is wrong, or asks for a login';
  else if (text.startsWith('version https')) what = 'a Git LFS pointer, not the GGUF file itself';
  if (what !== undefined) throw new PagewiseError('corrupt_model', `${url} is ${what}`, { url, offset: 0 });
}
