/**
 * A server of files behind the `fetch` of a {@link NetworkEnvironment}, with whatever can go wrong.
 */

import { setMaxListeners } from 'node:events';
import { NETWORK, type NetworkEnvironment } from '../src/retry.js';

/** A file that it serves. */
export interface ServedFile {
  bytes: Uint8Array<ArrayBuffer>;
  etag?: string;
  modified?: string;
  /** Answers 200 with everything. */
  isWhole?: boolean;
  /** Does not show `Content-Range`. */
  isShy?: boolean;
}

/** One request as it came. */
export interface Asked {
  url: string;
  method: string;
  /** First byte and the one after the last; undefined without `Range`. */
  range: [number, number] | undefined;
  headers: Record<string, string>;
  signal: AbortSignal;
}

/** A model's file of random bytes. */
export function modelFile(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  bytes.set(new TextEncoder().encode('GGUF'));
  return bytes;
}

/** A body that comes in pieces, and breaks after `cutAt` bytes or when the request is aborted. */
export function bodyOf(bytes: Uint8Array, signal: AbortSignal, cutAt = Number.POSITIVE_INFINITY): ReadableStream {
  let at = 0;
  return new ReadableStream({
    start: (controller) => signal.addEventListener('abort', () => controller.error(new Error('aborted'))),
    pull: (controller) => {
      if (at >= cutAt) return controller.error(new Error('cut'));
      const piece = bytes.slice(at, Math.min(at + 300, cutAt));
      at += piece.length;
      if (piece.length > 0) controller.enqueue(piece);
      if (at >= bytes.length) controller.close();
    },
  });
}

/** See the file's comment. */
export class FakeServer {
  readonly files = new Map<string, ServedFile>();
  readonly requests: Asked[] = [];
  readonly waits: number[] = [];
  /** Answers instead of the server, unless it has nothing to say. */
  intercept: (asked: Asked, file: ServedFile | undefined) => Response | Promise<undefined> | undefined = () =>
    undefined;

  readonly network: NetworkEnvironment = {
    ...NETWORK,
    fetch: (url, init) => this.#fetch(url, init),
    sleep: async (ms) => void this.waits.push(ms),
    stallMs: 1000,
    origin: 'https://own.example',
  };

  /** Ranges of GETs, but for the first bytes. */
  get ranges(): string[] {
    return this.requests.flatMap(({ url, range }) =>
      range === undefined || range[1] === 16 ? [] : [`${url.slice(-1)} ${range.join('-')}`],
    );
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const headers = init.headers as Record<string, string>;
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.Range ?? '') ?? [];
    const range: Asked['range'] = first === undefined ? undefined : [Number(first), Number(last) + 1];
    const asked = { url, method: init.method ?? 'GET', range, headers, signal: init.signal as AbortSignal };
    this.requests.push(asked);
    setMaxListeners(0, asked.signal);
    if (asked.signal.aborted) throw new DOMException('aborted', 'AbortError');
    const file = this.files.get(url);
    return (await this.intercept(asked, file)) ?? this.answer(asked, file);
  }

  /** What a good server answers; `cutAt` breaks the body. */
  answer({ method, range, headers: given, signal }: Asked, file: ServedFile | undefined, cutAt?: number): Response {
    if (file === undefined) return new Response('none', { status: 404 });
    const { bytes, etag, modified } = file;
    const headers: Record<string, string> = {};
    if (etag !== undefined) headers.etag = etag;
    if (modified !== undefined) headers['last-modified'] = modified;
    const condition = given['If-Range'];
    const isCurrent = condition === undefined || condition === etag || condition === modified;
    if (range === undefined || file.isWhole || !isCurrent || method === 'HEAD') {
      headers['content-length'] = String(bytes.length);
      return new Response(method === 'HEAD' ? null : bodyOf(bytes, signal, cutAt), { headers });
    }
    const [from, end] = [range[0], Math.min(range[1], bytes.length)];
    if (from >= end) return new Response(null, { status: 416 });
    headers['content-length'] = String(end - from);
    if (!file.isShy) headers['content-range'] = `bytes ${from}-${end - 1}/${bytes.length}`;
    return new Response(bodyOf(bytes.subarray(from, end), signal, cutAt), { status: 206, headers });
  }
}
