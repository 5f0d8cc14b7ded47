/**
 * One request in progress, as the page sees it: a queue of its events, filled by the worker's messages.
 */

import type { PagewiseError } from './errors.js';
import type { FinishedEvent, RequestEvent } from './protocol.js';

/** A text, progress or the end of an answer; failures are thrown. */
export type GenerationEvent = Exclude<RequestEvent, { kind: 'failed' }>;

interface Waiting {
  resolve: (event: GenerationEvent) => void;
  reject: (error: unknown) => void;
}

/** Events of one request. Every {@link next} settles. */
export class Generation {
  readonly #events: GenerationEvent[] = [];
  readonly #onEnd: (isComplete: boolean) => void;
  readonly #finishes: FinishedEvent[] = [];
  #waiting: Waiting | undefined;
  #error: PagewiseError | undefined;
  #hasEnded = false;

  /** Answers that it brings: so many `finished` events come, unless it fails. */
  readonly numChoices: number;
  /** Whether texts come with log-probabilities. */
  readonly hasLogprobs: boolean;

  /** `onEnd` is called once: with true after the last `finished` or a failure, with false when the reader gave up. */
  constructor(numChoices: number, onEnd: (isComplete: boolean) => void, hasLogprobs = false) {
    this.numChoices = numChoices;
    this.hasLogprobs = hasLogprobs;
    this.#onEnd = onEnd;
  }

  /** The answers that are complete, whether they were read or not. */
  get finishes(): readonly FinishedEvent[] {
    return this.#finishes;
  }

  /** Whether no event can follow any more. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The next event; the one after the last `finished` is not to be asked for. */
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
    if (event.kind === 'finished' && this.#finishes.push(event) === this.numChoices) this.#end(true);
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
