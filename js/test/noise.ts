/** Messages that nobody should send, made of ones that somebody has sent. */

import { guardFromWorker } from '../src/guard.js';
import type { FromWorker, ToWorker } from '../src/protocol.js';
import { FakeWorker } from './fake.js';

/** Mulberry32: a sequence of numbers from 0 to 1 that a seed decides. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes messages that nobody should send of ones that somebody has sent. */
export class Mutator {
  readonly #random: () => number;
  readonly #seen: unknown[] = [];

  constructor(seed: number) {
    this.#random = random(seed);
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  /** True so often, from 0 to 1. */
  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** A message that came before, or one of those changed somewhere. */
  next(message: unknown): unknown {
    this.#seen.push(message);
    const old = this.pick(this.#seen.slice(-30));
    return this.chance(0.3) ? old : this.#change(old, 0);
  }

  #junk(): unknown {
    const buffer = new ArrayBuffer(4);
    structuredClone(buffer, { transfer: [buffer] });
    return this.pick<unknown>([null, undefined, -1, 1.5, 2 ** 60, '', 'x', [], {}, [null], true, buffer, Number.NaN]);
  }

  #change(value: unknown, depth: number): unknown {
    if (typeof value !== 'object' || value === null || value instanceof Blob || depth > 3) return this.#junk();
    const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...value };
    const keys = Object.keys(copy);
    const key = this.pick(keys);
    if (key === undefined || this.chance(0.1)) return this.#junk();
    if (this.chance(0.2)) delete copy[key];
    else copy[key] = this.chance(0.5) ? this.#change(copy[key], depth + 1) : this.#junk();
    return copy;
  }
}

/** What ends the worker, or takes its model away: the fuzzer says these itself. */
export const isFinal = (message: unknown): boolean =>
  ['unload', 'leave', 'crashed'].includes((message as { type?: string })?.type ?? '');

/** A worker that gets, and sends, more than it should; all that is right comes as well, and in order. */
export class NoisyWorker extends FakeWorker {
  readonly #mutator: Mutator;
  #handler: ((event: { data: FromWorker }) => void) | null = null;
  numInjected = 0;

  constructor(seed: number) {
    super();
    this.#mutator = new Mutator(seed);
    const original = this.postMessage.bind(this);
    this.postMessage = (message, transfer) => {
      original(message, transfer);
      this.#inject(message, (junk) => ifSendable(junk, () => original(junk as ToWorker)));
    };
    Object.defineProperty(this, 'onmessage', {
      get: () => (event: { data: FromWorker }) => {
        this.#handler?.(event);
        this.#inject(event.data, (junk) => this.#handler?.({ data: junk as FromWorker }));
      },
      set: (handler) => {
        this.#handler = handler;
      },
    });
  }

  #inject(message: unknown, send: (junk: unknown) => void): void {
    while (this.#mutator.chance(0.5)) {
      const junk = aboutNothing(this.#mutator.next(message));
      // What would be right, for something else than was asked, is no noise but another answer.
      const isAnswer = ['result', 'error', 'events', 'hello'].includes((junk as { type?: string } | null)?.type ?? '');
      if (isFinal(junk) || (isAnswer && 'message' in guardFromWorker(junk)) || isReload(junk)) continue;
      this.numInjected += 1;
      send(junk);
    }
  }
}

/** The same about other calls and requests than there are: what is about them is theirs, noise or not. */
function aboutNothing(junk: unknown): unknown {
  if (typeof junk !== 'object' || junk === null || Array.isArray(junk)) return junk;
  const { id, request, events } = junk as { id?: unknown; request?: unknown; events?: unknown };
  const shift = (value: unknown): unknown => (typeof value === 'number' ? value + 1e6 : value);
  return {
    ...junk,
    ...(id === undefined ? {} : { id: shift(id) }),
    ...(request === undefined ? {} : { request: shift(request) }),
    ...(Array.isArray(events) ? { events: events.map(aboutNothing) } : {}),
  };
}

/** Some junk cannot even be sent. */
export function ifSendable(junk: unknown, send: () => void): void {
  try {
    structuredClone(junk);
  } catch {
    return;
  }
  send();
}

export const isReload = (junk: unknown): boolean =>
  ['hello', 'load'].includes((junk as { type?: string } | null)?.type ?? '');
