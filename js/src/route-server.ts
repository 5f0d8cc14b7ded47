/**
 * The page's end of a request that came to the service worker: answered through a port, piece by piece as the client reads.
 */

import type { ToPage, ToServiceWorker } from './route-protocol.js';

/** The part of a `MessagePort` that is used. */
export type RoutePort = Pick<MessagePort, 'postMessage' | 'close' | 'addEventListener' | 'start'>;

/** What gives the response; an abort of the request's signal means that nobody wants it any more. */
export type Handle = (request: Request) => Promise<Response>;

/** Offers to answer, and does if the worker agrees. Returns a function that breaks it off. */
export function answerOverPort(port: RoutePort, hasModel: boolean, handle: Handle, onEnd: () => void): () => void {
  const exchange = new PortExchange(port, handle, onEnd);
  exchange.post({ type: 'offer', hasModel });
  return () => exchange.breakOff('the page that was answering does so no longer');
}

class PortExchange {
  readonly #port: RoutePort;
  readonly #handle: Handle;
  readonly #onEnd: () => void;
  readonly #abort = new AbortController();
  #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  #hasEnded = false;

  constructor(port: RoutePort, handle: Handle, onEnd: () => void) {
    this.#port = port;
    this.#handle = handle;
    this.#onEnd = onEnd;
    port.addEventListener('message', ({ data }) => void this.#receive(data as ToPage));
    port.start();
  }

  post(message: ToServiceWorker, transfer: Transferable[] = []): void {
    if (!this.#hasEnded) this.#port.postMessage(message, transfer);
  }

  breakOff(message: string): void {
    this.post({ type: 'broken', message });
    this.#end();
  }

  async #receive(message: ToPage): Promise<void> {
    try {
      if (message.type === 'request') await this.#answer(message);
      else if (message.type === 'pull') await this.#send();
      else this.#end();
    } catch (error) {
      this.breakOff(error instanceof Error ? error.message : String(error));
    }
  }

  async #answer({ url, method, headers, body, life }: ToPage & { type: 'request' }): Promise<void> {
    const { signal } = this.#abort;
    if (life !== null) this.#endWith(life, signal);
    const response = await this.#handle(new Request(url, { method, headers, body, signal }));
    this.#reader = response.body?.getReader();
    this.post({ type: 'response', status: response.status, headers: [...response.headers] });
  }

  /** A worker that is ended says nothing, and its ports do not either, but its locks are free. */
  #endWith(life: string, signal: AbortSignal): void {
    const waiting = globalThis.navigator?.locks?.request(life, { mode: 'shared', signal }, () => this.#end());
    // It is no longer waited for.
    waiting?.catch(() => undefined);
  }

  async #send(): Promise<void> {
    const { value } = (await this.#reader?.read()) ?? {};
    if (value === undefined) {
      this.post({ type: 'end' });
      this.#end();
      return;
    }
    // A copy, because the buffer may be someone else's too.
    const bytes = value.slice();
    this.post({ type: 'chunk', bytes }, [bytes.buffer]);
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#abort.abort();
    this.#reader?.cancel().catch(() => undefined);
    this.#port.close();
    this.#onEnd();
  }
}
