/**
 * A request that a worker has, or is going to have. Workers count its time from when they get it; here it is counted from when it
 * was made, also over the loss of a worker.
 */

import { PagewiseError } from './errors.js';
import type { Generation } from './generation.js';
import type { CallMessage, EngineRequest } from './protocol.js';
import { afterMs, LONGEST_TIMER_MS } from './schedule-request.js';

/** See the file's comment. */
export class PendingRequest {
  readonly message: Extract<CallMessage, { type: 'submit' }>;
  readonly generation: Generation;
  /** On the page's clock. */
  readonly arrivedMs: number;
  /** Whether anything of the answer came. */
  hasBegun = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Made now. */
  constructor(message: Extract<CallMessage, { type: 'submit' }>, generation: Generation) {
    this.message = message;
    this.generation = generation;
    this.arrivedMs = performance.now();
  }

  /** The message for another worker, with what is left of the request's time. */
  again(): Extract<CallMessage, { type: 'submit' }> {
    return { ...this.message, request: afterMs(this.message.request, performance.now() - this.arrivedMs) };
  }

  /** Has its time kept here, for as long as no worker has said that it has the request. */
  watch(onLate: (error: PagewiseError) => void): void {
    this.unwatch();
    const limit = limitOf(this.message.request);
    if (limit === undefined) return;
    const left = limit.ms - (performance.now() - this.arrivedMs);
    if (left > LONGEST_TIMER_MS) return;
    const late = (): void => {
      onLate(new PagewiseError('deadline_exceeded', `deadline exceeded: ${limit.name} of ${limit.ms} ms has passed`));
    };
    this.#timer = setTimeout(late, left);
  }

  /** A worker has it, or nobody waits any more. */
  unwatch(): void {
    clearTimeout(this.#timer);
  }
}

/** What passes first of what an answer has to be complete by. */
function limitOf({ deadlineMs, totalTimeoutMs }: EngineRequest): { name: string; ms: number } | undefined {
  const limits = [
    { name: 'deadline_ms', ms: deadlineMs },
    { name: 'timeout_ms.total', ms: totalTimeoutMs },
  ].flatMap(({ name, ms }) => (ms === undefined ? [] : [{ name, ms }]));
  return limits.sort((a, b) => a.ms - b.ms)[0];
}
