/**
 * The page's end of a worker: calls with one answer, requests with events. Every promise settles, whatever happens to the
 * worker. A worker that is shared may be replaced by another one: what nobody has answered yet waits for it.
 */

import type { CacheEvent } from './cache-types.js';
import type { Channel, OpenChannel } from './channel.js';
import { cancelledError, PagewiseError } from './errors.js';
import { Generation } from './generation.js';
import { buffersOf, guardFromWorker, isRequestEvent, isResultOf } from './guard.js';
import { HELLO, isOurs, otherWorker } from './hello.js';
import { Listeners } from './listeners.js';
import { tryToMeasure } from './measure.js';
import { PendingRequest } from './pending-request.js';
import type { CallMessage, Calls, CallType, EngineRequest, FromWorker, HelloMessage, ToWorker } from './protocol.js';
import type { LoadProgress, StepTrace } from './types.js';

/** A worker that does not answer `unload` for this long is ended all the same. */
export const UNLOAD_MS = 3000;

/** Calls that make no sense to another worker. */
const ONLY_HERE: readonly CallType[] = ['load', 'unload', 'cacheListen', 'stepListen'];

interface PendingCall {
  message: CallMessage;
  resolve: (value: never) => void;
  reject: (error: PagewiseError) => void;
}

/** A worker, or whichever worker takes its place. */
export class WorkerClient {
  #channel: Channel | undefined;
  /** Whether the worker of the channel has said who it is. */
  #isGreeted = false;
  readonly #calls = new Map<number, PendingCall>();
  readonly #requests = new Map<number, PendingRequest>();
  readonly #cleanups: (() => void)[] = [];
  /** Of what happens in the prefix cache. */
  readonly #cacheEvents = this.#listeners<CacheEvent>('cacheListen');
  /** Of steps. */
  readonly #steps = this.#listeners<StepTrace>('stepListen');
  #stepTarget: number | null | undefined;
  #nextId = 1;
  #closed: PagewiseError | undefined;
  #unloading: Promise<void> | undefined;
  /** Web Lock by which a shared worker knows that this page is there. */
  life: string | null = null;
  /** Messages that came; the protocol's, or not. */
  numReceived = 0;
  /** Messages that were none of the protocol's, or about nothing that is known. */
  numIgnored = 0;
  /** Called with the progress of loading. */
  onProgress: ((progress: LoadProgress) => void) | undefined;
  /** Called with the number of pages that the worker serves. */
  onClients: ((num: number) => void) | undefined;
  /** What to do when the worker has crashed, or cannot be understood any more; by default, it is the end. */
  onBroken: (error: PagewiseError, hasCrashed: boolean) => void = (error) => this.close(error);

  /** Starts a worker; without one, everything waits for {@link attach}. */
  constructor(open?: OpenChannel) {
    if (open !== undefined) this.attach(open);
  }

  /** Why the worker is gone for good; undefined while it, or another one, can be used. */
  get closed(): PagewiseError | undefined {
    return this.#closed;
  }

  /** Whether anything waits for the worker. */
  get isWaiting(): boolean {
    return this.#calls.size > 0 || this.#requests.size > 0;
  }

  /** Uses a worker. What waits is sent, after `first`. */
  attach(open: OpenChannel, first?: () => void): void {
    if (this.#closed !== undefined) return;
    this.#isGreeted = false;
    let channel: Channel | undefined;
    const ifCurrent =
      <T>(use: (value: T) => void) =>
      (value: T): void => {
        if (this.#channel === channel) use(value);
      };
    channel = open({
      onMessage: ifCurrent((data) => this.#receive(data)),
      onBroken: ifCurrent((error) => this.onBroken(error, false)),
    });
    this.#channel = channel;
    const waiting = [...this.#calls.values(), ...this.#requests.values()].map(({ message }) => message);
    this.#post({ ...HELLO, life: this.life });
    first?.();
    if (this.#cacheEvents.isOn) void this.call('cacheListen', { isOn: true }).catch(() => undefined);
    if (this.#steps.isOn) void this.call('stepListen', { isOn: true }).catch(() => undefined);
    if (this.#stepTarget !== undefined) this.#post({ type: 'stepTarget', ms: this.#stepTarget });
    for (const message of [...new Set(waiting)].sort((a, b) => a.id - b.id)) {
      this.#send(this.#requests.get(message.id)?.again() ?? message);
    }
  }

  /**
   * Leaves the worker: answers that have begun fail with `error`, and so do calls that mean this worker; all else waits for
   * {@link attach}.
   */
  detach(error: PagewiseError): void {
    this.#channel?.end();
    this.#channel = undefined;
    for (const [id, { message, reject }] of [...this.#calls]) {
      const isOver = ONLY_HERE.includes(message.type);
      // A buffer that was handed over is lost with the worker.
      if (!isOver && buffersOf(message).every(({ byteLength }) => byteLength > 0)) continue;
      this.#calls.delete(id);
      reject(error);
    }
    for (const request of [...this.#requests.values()]) {
      if (request.hasBegun) request.generation.fail(error, true);
      else this.#watch(request);
    }
  }

  /** Sends a call and waits for its answer. */
  call<T extends CallType>(type: T, args: Calls[T]['args']): Promise<Calls[T]['result']> {
    return this.#call(this.#message(type, args));
  }

  /**
   * Sends a request; resolves once it is queued. An abort of the signal cancels it at any time. `name` stands for it in
   * traces and measures.
   */
  async generate(request: EngineRequest, signal: AbortSignal | undefined, name?: string): Promise<Generation> {
    if (signal?.aborted) throw cancelledError(signal);
    const label = name ?? `request-${this.#nextId}`;
    const message = this.#message('submit', { request, name: label });
    const { id } = message;
    const onAbort = (): void => this.#giveUp(pending, cancelledError(signal));
    const onEnd = (isComplete: boolean): void => {
      signal?.removeEventListener('abort', onAbort);
      pending.unwatch();
      this.#requests.delete(id);
      const { finishes, numChoices } = generation;
      if (finishes.length === numChoices) tryToMeasure(label, pending.arrivedMs, finishes);
      if (!isComplete) this.#post({ type: 'cancel', request: id });
    };
    const generation = new Generation(request.numChoices, onEnd, request.logprobs !== undefined);
    const pending = new PendingRequest(message, generation);
    signal?.addEventListener('abort', onAbort);
    this.#requests.set(id, pending);
    // A worker of the page's own is always there.
    if (this.life !== null) this.#watch(pending);
    try {
      await this.#call(message);
    } catch (error) {
      generation.fail(error as PagewiseError, true);
      throw error;
    }
    return generation;
  }

  /** Calls back with what happens in the prefix cache; returns a function that ends it. */
  listenToCache(callback: (event: CacheEvent) => void): () => void {
    return this.#cacheEvents.add(callback);
  }

  /** Calls back with every step; returns a function that ends it. */
  listenToSteps(callback: (step: StepTrace) => void): () => void {
    return this.#steps.add(callback);
  }

  /** Says how many milliseconds a submission to the GPU should take; null for no limit. */
  setStepTarget(ms: number | null): void {
    this.#stepTarget = ms;
    this.#post({ type: 'stepTarget', ms });
  }

  /** Asks for a sign of life: any message will do. */
  ping(): void {
    this.#post({ type: 'ping' });
  }

  /** Has the worker serve another page. */
  connect(via: MessagePort | string): void {
    this.#post({ type: 'connect', via }, typeof via === 'string' ? [] : [via]);
  }

  /** Has something done when the worker ends for good, however it does. */
  atEnd(cleanup: () => void): void {
    if (this.#closed === undefined) this.#cleanups.push(cleanup);
    else cleanup();
  }

  #watch(request: PendingRequest): void {
    request.watch((error) => this.#giveUp(request, error));
  }

  /** Nobody waits for it any more. */
  #giveUp({ message, generation }: PendingRequest, error: PagewiseError): void {
    generation.fail(error, false);
    this.#take(message.id)?.reject(error);
  }

  #listeners<T>(type: 'cacheListen' | 'stepListen'): Listeners<T> {
    // A worker that is gone has no events; whoever calls it learns why. Without one, `attach` says it.
    return new Listeners((isOn) => {
      if (this.#channel !== undefined) void this.call(type, { isOn }).catch(() => undefined);
    });
  }

  /** Ends the worker, or leaves it, at once; everything that is pending, and every later call, fails with `error`. */
  close(error: PagewiseError): void {
    this.#refuse(error);
    this.#channel?.end();
    this.#channel = undefined;
  }

  /**
   * As {@link close}, after the worker has freed what it holds or {@link UNLOAD_MS} have passed. Whoever calls it again waits
   * as long.
   */
  unload(error: PagewiseError): Promise<void> {
    this.#unloading ??= this.#closed === undefined ? this.#free(error) : Promise.resolve();
    return this.#unloading;
  }

  async #free(error: PagewiseError): Promise<void> {
    this.#refuse(error);
    const channel = this.#channel;
    if (channel === undefined) return;
    await new Promise<void>((resolve) => {
      const message = this.#message('unload', {});
      const timer = setTimeout(resolve, UNLOAD_MS);
      const freed = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.#calls.set(message.id, { message, resolve: freed, reject: freed });
      channel.post(message, []);
    });
    if (this.#channel !== channel) return;
    channel.end();
    this.#channel = undefined;
  }

  /** Fails everything that is pending, and from now on every call. */
  #refuse(error: PagewiseError): void {
    this.#closed ??= error;
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.reject(error);
    for (const { generation } of [...this.#requests.values()]) generation.fail(error, true);
  }

  #message<T extends CallType>(type: T, args: Calls[T]['args']): Extract<CallMessage, { type: T }> {
    return { type, id: this.#nextId++, ...args } as never;
  }

  #call<M extends CallMessage>(message: M): Promise<Calls[M['type']]['result']> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => {
      this.#calls.set(message.id, { message, resolve, reject });
      if (this.#channel !== undefined) this.#send(message);
    });
  }

  /** Sends a call; what cannot be sent is its failure. */
  #send(message: CallMessage): void {
    try {
      this.#channel?.post(message, message.type === 'cacheRestore' ? buffersOf(message) : []);
    } catch (cause) {
      const text = `${message.type}: the arguments cannot be sent: ${cause instanceof Error ? cause.message : cause}`;
      const error = new PagewiseError('bad_request', text, { cause });
      this.#take(message.id)?.reject(error);
      this.#requests.get(message.id)?.generation.fail(error, true);
    }
  }

  #post(message: ToWorker, transfer: Transferable[] = []): void {
    if (this.#closed === undefined) this.#channel?.post(message, transfer);
  }

  #receive(data: unknown): void {
    this.numReceived += 1;
    const guarded = guardFromWorker(data);
    if (!('message' in guarded)) {
      this.#refuseAnswer(guarded.id, guarded.problem);
      return;
    }
    const { message } = guarded;
    if (message.type === 'hello') this.#greet(message);
    else if (message.type === 'crashed') this.onBroken(PagewiseError.fromRecord(message.error), true);
    else if (!this.#isGreeted) this.onBroken(otherWorker(undefined), false);
    else this.#handle(message);
  }

  #greet(hello: HelloMessage): void {
    this.#isGreeted = isOurs(hello);
    if (!this.#isGreeted) this.onBroken(otherWorker(hello.version), false);
  }

  #handle(message: Exclude<FromWorker, HelloMessage | { type: 'crashed' }>): void {
    switch (message.type) {
      case 'result':
        this.#answer(message.id, message.value);
        break;
      case 'error':
        this.#fail(message.id, PagewiseError.fromRecord(message.error));
        break;
      case 'progress':
        this.onProgress?.(message.progress);
        break;
      case 'events':
        for (const event of message.events) this.#dispatch(event);
        break;
      case 'cacheEvents':
        this.#cacheEvents.tell(message.events);
        break;
      case 'steps': {
        const shift = message.timeOrigin - performance.timeOrigin;
        const onPage = (step: StepTrace): StepTrace => {
          return { ...step, startMs: step.startMs + shift, endMs: step.endMs + shift };
        };
        this.#steps.tell(message.steps.map(onPage));
        break;
      }
      case 'clients':
        this.onClients?.(message.num);
        break;
      case 'pong':
        break;
    }
  }

  #answer(id: number, value: unknown): void {
    const call = this.#calls.get(id);
    this.#requests.get(id)?.unwatch();
    // A request that was sent again is queued again, which nobody waits for.
    if (call === undefined) this.numIgnored += this.#requests.has(id) ? 0 : 1;
    else if (!isResultOf(call.message.type, value))
      this.#refuseAnswer(id, `the result of ${call.message.type} is malformed`);
    else this.#take(id)?.resolve(value as never);
  }

  #fail(id: number, error: PagewiseError): void {
    const call = this.#take(id);
    const request = this.#requests.get(id);
    if (call === undefined && request === undefined) this.numIgnored += 1;
    call?.reject(error);
    if (call === undefined) request?.generation.fail(error, true);
  }

  /** An answer that is none: whoever waits for it learns that, and the worker that nobody waits any more. */
  #refuseAnswer(id: number | undefined, problem: string): void {
    const isKnown = id !== undefined && (this.#calls.has(id) || this.#requests.has(id));
    if (!isKnown) {
      this.numIgnored += 1;
      return;
    }
    const error = new PagewiseError('worker_crashed', `the worker sent what is none of its protocol: ${problem}`);
    this.#requests.get(id)?.generation.fail(error, false);
    this.#take(id)?.reject(error);
  }

  #take(id: number): PendingCall | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    return call;
  }

  #dispatch(event: unknown): void {
    if (!isRequestEvent(event)) {
      this.#refuseAnswer((event as { request?: number } | null)?.request, 'an event is malformed');
      return;
    }
    // Of requests that were given up, events may be on the way.
    const request = this.#requests.get(event.request);
    if (request === undefined) return;
    if (event.kind === 'failed') {
      request.generation.fail(PagewiseError.fromRecord(event.error), true);
      return;
    }
    if (event.kind !== 'progress') request.hasBegun = true;
    request.generation.push(event);
  }
}
