/**
 * One request in progress, as the page sees it: a queue of its events, filled by the worker's messages.
 */

import type { PagewiseError } from './errors.js';
import type { RequestEvent } from './protocol.js';

/** A text or the end of a request; failures are thrown. */
export type GenerationEvent = Exclude<RequestEvent, { kind: 'failed' }>;

interface Waiting {
  resolve: (event: GenerationEvent) => void;
  reject: (error: unknown) => void;
}

/** Events of one request. Every {@link next} settles. */
export class Generation {
  readonly #events: GenerationEvent[] = [];
  readonly #onEnd: (isComplete: boolean) => void;
  #waiting: Waiting | undefined;
  #error: PagewiseError | undefined;
  #hasEnded = false;

  /** `onEnd` is called once: with true after `finished` or a failure, with false when the reader gave up. */
  constructor(onEnd: (isComplete: boolean) => void) {
    this.#onEnd = onEnd;
  }

  /** Whether no event can follow any more. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The next event; the one after `finished` is not to be asked for. */
  next(): Promise<GenerationEvent> {
    const event = this.#events.shift();
    if (event !== undefined) return Promise.resolve(event);
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  /** Adds an event from the worker. */
  push(event: GenerationEvent): void {
    if (this.#hasEnded) return;
    if (event.kind === 'finished') this.#end(true);
    const waiting = this.#take();
    if (waiting === undefined) this.#events.push(event);
    else waiting.resolve(event);
  }

  /** Ends with an error; events that were not read yet are dropped when the reader gave up. */
  fail(error: PagewiseError, isComplete: boolean): void {
    if (this.#hasEnded) return;
    if (!isComplete) this.#events.length = 0;
    this.#error = error;
    this.#end(isComplete);
    this.#take()?.reject(error);
  }

  #take(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #end(isComplete: boolean): void {
    this.#hasEnded = true;
    this.#onEnd(isComplete);
  }
}
