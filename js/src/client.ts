/**
 * The page's end of the worker: calls with one answer, requests with events. Every promise settles, whatever happens to
 * the worker.
 */

import type { CacheEvent } from './cache-types.js';
import { cancelledError, PagewiseError } from './errors.js';
import { show } from './fields.js';
import { Generation } from './generation.js';
import { Listeners } from './listeners.js';
import { tryToMeasure } from './measure.js';
import type { CallMessage, Calls, CallType, EngineRequest, FromWorker, RequestEvent, ToWorker } from './protocol.js';
import type { LoadProgress, StepTrace } from './types.js';

/** A worker that does not answer `unload` for this long is ended all the same. */
export const UNLOAD_MS = 3000;

interface PendingCall {
  resolve: (value: never) => void;
  reject: (error: PagewiseError) => void;
}

/** A worker that was started. */
export class WorkerClient {
  readonly #worker: Worker;
  readonly #calls = new Map<number, PendingCall>();
  readonly #generations = new Map<number, Generation>();
  readonly #cleanups: (() => void)[] = [];
  /** Of what happens in the prefix cache. */
  readonly #cacheEvents = this.#listeners<CacheEvent>('cacheListen');
  /** Of steps. */
  readonly #steps = this.#listeners<StepTrace>('stepListen');
  #nextId = 1;
  #closed: PagewiseError | undefined;
  #unloading: Promise<void> | undefined;
  /** Called with the progress of loading. */
  onProgress: ((progress: LoadProgress) => void) | undefined;

  /** Starts a worker. */
  constructor(createWorker: () => Worker) {
    let worker: Worker;
    try {
      worker = createWorker();
    } catch (cause) {
      throw new PagewiseError('worker_crashed', `the worker could not be started: ${textOf(cause)}`, { cause });
    }
    if (typeof worker?.postMessage !== 'function' || typeof worker.terminate !== 'function') {
      throw new PagewiseError('bad_request', `createWorker: it has to return a Worker, ${show(worker)} returned`);
    }
    this.#worker = worker;
    this.#worker.onmessage = (event: MessageEvent<FromWorker>) => this.#receive(event.data);
    this.#worker.onerror = (event) => {
      // Without a message, the script itself could not be loaded.
      const what = event.message
        ? event.message
        : 'its script could not be loaded; is worker.js served, and allowed by worker-src?';
      this.close(new PagewiseError('worker_crashed', `the worker failed: ${what}`));
    };
    this.#worker.onmessageerror = () => {
      this.close(new PagewiseError('worker_crashed', 'a message of the worker could not be read'));
    };
  }

  /** Why the worker is gone; undefined while it is there. */
  get closed(): PagewiseError | undefined {
    return this.#closed;
  }

  /** Sends a call and waits for its answer. */
  call<T extends CallType>(type: T, args: Calls[T]['args']): Promise<Calls[T]['result']> {
    return this.#call(this.#nextId++, type, args);
  }

  /**
   * Sends a request; resolves once it is queued. An abort of the signal cancels it at any time. `name` stands for it in
   * traces and measures.
   */
  async generate(request: EngineRequest, signal: AbortSignal | undefined, name?: string): Promise<Generation> {
    if (signal?.aborted) throw cancelledError(signal);
    const id = this.#nextId++;
    const label = name ?? `request-${id}`;
    const arrivedMs = performance.now();
    const onAbort = (): void => {
      const error = cancelledError(signal);
      generation.fail(error, false);
      this.#calls.get(id)?.reject(error);
      this.#calls.delete(id);
    };
    const onEnd = (isComplete: boolean): void => {
      signal?.removeEventListener('abort', onAbort);
      this.#generations.delete(id);
      const { finishes, numChoices } = generation;
      if (finishes.length === numChoices) tryToMeasure(label, arrivedMs, finishes);
      if (!isComplete) this.#post({ type: 'cancel', request: id });
    };
    const generation = new Generation(request.numChoices, onEnd, request.logprobs !== undefined);
    signal?.addEventListener('abort', onAbort);
    this.#generations.set(id, generation);
    try {
      await this.#call(id, 'submit', { request, name: label });
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
    this.#post({ type: 'stepTarget', ms });
  }

  /** Has something done when the worker ends, however it does. */
  atEnd(cleanup: () => void): void {
    if (this.#closed === undefined) this.#cleanups.push(cleanup);
    else cleanup();
  }

  #listeners<T>(type: 'cacheListen' | 'stepListen'): Listeners<T> {
    // A worker that is gone has no events; whoever calls it learns why.
    return new Listeners((isOn) => void this.call(type, { isOn }).catch(() => undefined));
  }

  /** Ends the worker at once; everything that is pending, and every later call, fails with `error`. */
  close(error: PagewiseError): void {
    this.#refuse(error);
    this.#worker.terminate();
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
    const freed = new Promise<void>((resolve) => {
      const id = this.#nextId++;
      this.#calls.set(id, { resolve: () => resolve(), reject: () => resolve() });
      this.#worker.postMessage({ type: 'unload', id } satisfies ToWorker);
      setTimeout(resolve, UNLOAD_MS);
    });
    await freed;
    this.#worker.terminate();
  }

  /** Fails everything that is pending, and from now on every call. */
  #refuse(error: PagewiseError): void {
    this.#closed ??= error;
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.reject(error);
    for (const generation of [...this.#generations.values()]) generation.fail(error, true);
  }

  #call<T extends CallType>(id: number, type: T, args: Calls[T]['args']): Promise<Calls[T]['result']> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      try {
        this.#post({ type, id, ...args } as CallMessage);
      } catch (cause) {
        this.#calls.delete(id);
        reject(new PagewiseError('bad_request', `${type}: the arguments cannot be sent: ${textOf(cause)}`, { cause }));
      }
    });
  }

  #post(message: ToWorker): void {
    if (this.#closed === undefined) this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case 'result':
        this.#take(message.id)?.resolve(message.value as never);
        break;
      case 'error':
        this.#take(message.id)?.reject(PagewiseError.fromRecord(message.error));
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
      case 'crashed':
        this.close(new PagewiseError('worker_crashed', message.message));
        break;
    }
  }

  #take(id: number): PendingCall | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    return call;
  }

  #dispatch(event: RequestEvent): void {
    const generation = this.#generations.get(event.request);
    if (event.kind === 'failed') generation?.fail(PagewiseError.fromRecord(event.error), true);
    else generation?.push(event);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
