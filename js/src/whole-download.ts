/**
 * A file from a server that cannot send ranges: one GET whose bytes are kept in blobs (the browser may keep those on
 * disk), readable while they arrive. Used only when a server answers a range request with the whole file.
 */

import { ByteStream, request } from './byte-stream.js';
import { PagewiseError } from './errors.js';
import { type NetworkEnvironment, TransientError, withRetries } from './retry.js';

/** Larger files need a server that can send ranges. */
export const MAX_WHOLE_BYTES = 2 * 1024 ** 3;
/** Bytes of one blob. */
const BLOB_BYTES = 8 * 1024 ** 2;

/** Where and how the file is read. */
export interface WholeDownloadOptions {
  /** The network. */
  environment: NetworkEnvironment;
  /** The file. */
  url: string;
  /** Headers of a restarted GET. */
  headers: Record<string, string>;
  /** Ends the download. */
  signal: AbortSignal;
}

/** One download in progress. */
export class WholeDownload {
  readonly #options: WholeDownloadOptions;
  readonly #blobs: Blob[] = [];
  #pending: Uint8Array<ArrayBuffer> = new Uint8Array(BLOB_BYTES);
  #numPending = 0;
  #have = 0;
  #isComplete = false;
  #error: unknown;
  #wake: () => void = () => undefined;
  #changed: Promise<void> = Promise.resolve();
  readonly #etag: string | null;
  /** Size that the server announced; undefined when it did not, or when the body is compressed on the way. */
  readonly announcedLength: number | undefined;

  /** Starts downloading with the answer that was already received. */
  constructor(options: WholeDownloadOptions, response: Response) {
    this.#options = options;
    this.#etag = response.headers.get('etag');
    this.announcedLength = announced(response);
    this.#arm();
    void this.#run(response);
  }

  /** Size of the file: announced, else known at the end of the download. */
  async length(): Promise<number> {
    this.#check(this.announcedLength ?? 0);
    if (this.announcedLength !== undefined) return this.announcedLength;
    while (!this.#isComplete) await this.#change();
    return this.#have;
  }

  /** Up to `length` bytes (fewer at the end of the file), as soon as they are there. */
  async read(offset: number, length: number): Promise<Uint8Array> {
    while (!this.#isComplete && this.#have < offset + length) await this.#change();
    const end = Math.min(offset + length, this.#have);
    const out = new Uint8Array(Math.max(0, end - offset));
    let filled = 0;
    while (filled < out.length) {
      const at = offset + filled;
      const index = Math.floor(at / BLOB_BYTES);
      const from = at - index * BLOB_BYTES;
      const blob = this.#blobs[index];
      const take = Math.min(BLOB_BYTES - from, out.length - filled);
      const piece =
        blob === undefined
          ? this.#pending.subarray(from, from + take)
          : new Uint8Array(await blob.slice(from, from + take).arrayBuffer());
      out.set(piece, filled);
      filled += piece.length;
    }
    return out;
  }

  async #change(): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    await this.#changed;
  }

  #arm(): void {
    this.#changed = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #notify(): void {
    this.#wake();
    this.#arm();
  }

  async #run(first: Response): Promise<void> {
    let response: Response | undefined = first;
    try {
      await withRetries(
        this.#options.environment,
        () => this.#have,
        async () => {
          const { environment, url, headers, signal } = this.#options;
          if (response === undefined) {
            response = await request(environment, url, { headers, signal }, this.#have);
            this.#checkSame(response);
          }
          const stream = new ByteStream(environment, url, response, 0);
          response = undefined;
          await this.#drain(stream);
        },
      );
      this.#isComplete = true;
    } catch (error) {
      this.#error = error;
    }
    this.#notify();
  }

  /** What is there already and what comes now have to be of one file. */
  #checkSame(response: Response): void {
    const length = announced(response);
    const isOtherLength = length !== undefined && this.announcedLength !== undefined && length !== this.announcedLength;
    if (!isOtherEtag(response, this.#etag) && !isOtherLength) return;
    void response.body?.cancel();
    throw changedError(this.#options.url, this.#have);
  }

  /** Reads one body to its end; a body that restarts from byte 0 is skipped up to what is there already. */
  async #drain(stream: ByteStream): Promise<void> {
    for (;;) {
      const piece = await stream.pull(Number.MAX_SAFE_INTEGER);
      if (piece === undefined) break;
      const skip = Math.max(0, this.#have - (stream.position - piece.length));
      if (skip < piece.length) this.#append(piece.subarray(skip));
      if (this.#have > MAX_WHOLE_BYTES) {
        stream.close();
        this.#check(this.#have);
      }
      this.#notify();
    }
    const expected = this.announcedLength;
    if (expected !== undefined && this.#have < expected) {
      const { url } = this.#options;
      const message = `${url} ended at byte ${this.#have} of ${expected}`;
      throw new TransientError('network', message, { url, offset: this.#have });
    }
  }

  #append(bytes: Uint8Array): void {
    let done = 0;
    while (done < bytes.length) {
      const take = Math.min(BLOB_BYTES - this.#numPending, bytes.length - done);
      this.#pending.set(bytes.subarray(done, done + take), this.#numPending);
      this.#numPending += take;
      done += take;
      if (this.#numPending === BLOB_BYTES) {
        this.#blobs.push(new Blob([this.#pending]));
        this.#pending = new Uint8Array(BLOB_BYTES);
        this.#numPending = 0;
      }
    }
    this.#have += bytes.length;
  }

  #check(length: number): void {
    if (length <= MAX_WHOLE_BYTES) return;
    const { url } = this.#options;
    const message =
      `${url} has ${length} bytes and its server cannot send ranges; ` +
      `files over ${MAX_WHOLE_BYTES} bytes need a server that answers Range requests with 206`;
    throw new PagewiseError('network', message, { url, status: 200 });
  }
}

function announced(response: Response): number | undefined {
  const length = response.headers.get('content-encoding') === null ? response.headers.get('content-length') : null;
  return length === null ? undefined : Number(length);
}

/** Whether an answer is of another version of a file; unknown where either says none. */
export function isOtherEtag(response: Response, before: string | null): boolean {
  const etag = response.headers.get('etag');
  return etag !== null && before !== null && etag !== before;
}

/** The error of a file that is another one than it was. */
export function changedError(url: string, offset: number): PagewiseError {
  return new PagewiseError('network', `${url} changed while it was being read`, { url, offset });
}
