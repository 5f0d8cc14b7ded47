/**
 * One HTTP answer whose body is pulled piece by piece, with a limit on silence.
 */

import { PagewiseError } from './errors.js';
import { isTransientStatus, type NetworkEnvironment, TransientError, within } from './retry.js';

/** Sends one GET and returns the answer; statuses other than 200, 206 and 416 are errors that say what to do. */
export async function request(
  environment: NetworkEnvironment,
  url: string,
  init: { headers: Record<string, string>; signal: AbortSignal; method?: string },
  offset: number,
): Promise<Response> {
  let response: Response;
  // A request that is given up has to end: browsers have six connections to a host, and each would keep one of them.
  const end = new AbortController();
  const late = (): TransientError => {
    end.abort();
    return new TransientError('network', `no answer from ${url} for ${environment.stallMs / 1000} s`, { url, offset });
  };
  const signal = AbortSignal.any([init.signal, end.signal]);
  try {
    response = await within(environment.fetch(url, { ...init, signal }), environment.stallMs, late);
  } catch (error) {
    if (init.signal.aborted) throw new PagewiseError('cancelled', 'cancelled', { cause: error });
    if (error instanceof PagewiseError) throw error;
    const message = `could not reach ${url} at byte ${offset}: network down, host unknown, or blocked by CORS or CSP`;
    throw new TransientError('network', message, { url, offset, cause: error });
  }
  if (response.ok || response.status === 416) return response;
  const { status } = response;
  void response.body?.cancel();
  const details = { url, status, offset };
  if (isTransientStatus(status))
    throw new TransientError('network', `${url} answered ${status} at byte ${offset}`, details);
  const hint =
    status === 404 || status === 410 ? 'no such file' : status === 401 || status === 403 ? 'access denied' : 'refused';
  throw new PagewiseError('network', `${url} answered ${status}: ${hint}`, details);
}

/** The body of one answer, from `position` on. */
export class ByteStream {
  readonly #environment: NetworkEnvironment;
  readonly #url: string;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);
  /** Offset in the file of the next byte. */
  position: number;

  /** Starts reading `response`, whose first byte is byte `position` of the file. */
  constructor(environment: NetworkEnvironment, url: string, response: Response, position: number) {
    if (response.body === null)
      throw new TransientError('network', `${url} answered without a body`, { url, offset: position });
    this.#environment = environment;
    this.#url = url;
    this.#reader = response.body.getReader();
    this.position = position;
  }

  /** Up to `limit` bytes, at least one; undefined at the end of the body. Transient errors say the offset. */
  async pull(limit: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const result = await this.#next();
      if (result.done) return undefined;
      this.#rest = result.value;
    }
    const piece = this.#rest.subarray(0, limit);
    this.#rest = this.#rest.subarray(piece.length);
    this.position += piece.length;
    return piece;
  }

  async #next(): Promise<ReadableStreamReadResult<Uint8Array>> {
    const details = { url: this.#url, offset: this.position };
    const where = `${this.#url} at byte ${this.position}`;
    const seconds = this.#environment.stallMs / 1000;
    const late = (): TransientError => new TransientError('network', `no data from ${where} for ${seconds} s`, details);
    try {
      return await within(this.#reader.read(), this.#environment.stallMs, late);
    } catch (error) {
      this.close();
      if (error instanceof PagewiseError) throw error;
      throw new TransientError('network', `the connection broke: ${where}`, { ...details, cause: error });
    }
  }

  /** Ends the request. */
  close(): void {
    this.#reader.cancel().catch(() => undefined);
  }
}
