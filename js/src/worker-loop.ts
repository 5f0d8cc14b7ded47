/**
 * The worker's loop: messages queue in an inbox that is drained at the top of a step; nothing acts in between. It serves one
 * page or several; each has ids of its own, and learns of its own requests only.
 */

import { callEngine } from './engine-calls.js';
import { type ErrorRecord, isErrorRecord, PagewiseError, recordOf } from './errors.js';
import { buffersOf, guardToWorker } from './guard.js';
import { HELLO, isOurs, otherPage } from './hello.js';
import { ModelLoader } from './model-loader.js';
import { nextTask } from './next-task.js';
import type { CallMessage, Calls, CallType, FromWorker, HelloMessage, RequestEvent, ToWorker } from './protocol.js';
import { restoreCache, saveCache } from './saved-cache.js';
import { type SendToPage, ServedPage, stepTargetOf } from './served-page.js';
import type { EngineInfo } from './types.js';
import type { WasmEngine } from './wasm.js';
import type { WorkerEnvironment } from './worker-environment.js';

/** A request that the engine has. */
interface ActiveRequest {
  page: ServedPage;
  /** What the page calls it. */
  id: number;
  /** What traces call it. */
  name: string;
  /** Answers that have not ended yet. */
  numLeft: number;
}

/** What waits for the end of a step. */
type Queued = CallMessage | Extract<ToWorker, { type: 'cancel' | 'stepTarget' | 'leave' }>;

/** The loop. It holds at most one engine. */
export class WorkerLoop {
  readonly #environment: WorkerEnvironment;
  readonly #onCrash: () => void;
  readonly #inbox: { page: ServedPage; message: Queued; arrivedMs: number }[] = [];
  readonly #pages = new Set<ServedPage>();
  readonly #active = new Map<number, ActiveRequest>();
  readonly #loader: ModelLoader;
  #loaded: { engine: WasmEngine; info: EngineInfo; group: string | null } | undefined;
  #nextRequest = 1;
  #wake: () => void = () => undefined;
  #hasCrashed = false;

  /** Runs nothing yet: see {@link run}. `onCrash` is called after all pages were told. */
  constructor(environment: WorkerEnvironment, onCrash: () => void = () => undefined) {
    this.#environment = environment;
    this.#onCrash = onCrash;
    this.#loader = new ModelLoader(environment, (message) => this.#tell(message));
  }

  /** Serves a page; returns what takes its messages. The worker ends with its owner; `close` is called when a page is gone. */
  connect(
    send: SendToPage,
    { isOwner = false, close = () => undefined }: { isOwner?: boolean; close?: () => void } = {},
  ): (data: unknown) => void {
    const page = new ServedPage(send, isOwner);
    page.atEnd(close);
    this.#pages.add(page);
    return (data) => this.#receive(page, data);
  }

  /** Messages of all pages that were none of the protocol's. */
  get numIgnored(): number {
    return [...this.#pages].reduce((sum, page) => sum + page.numIgnored, 0);
  }

  /** Says that the module is beyond use and stops the loop; only the first crash is told. */
  crash(error: unknown): void {
    if (this.#hasCrashed) return;
    this.#hasCrashed = true;
    const text = error instanceof Error ? error.message : String(error);
    const record = isErrorRecord(error)
      ? error
      : { code: 'worker_crashed' as const, message: `the engine crashed: ${text}` };
    this.#tell({ type: 'crashed', error: { code: record.code, message: record.message } });
    this.#onCrash();
  }

  /** Serves until a crash. */
  async run(): Promise<void> {
    try {
      while (!this.#hasCrashed) {
        await this.#drain();
        if (this.#loaded?.engine.hasWork()) {
          await this.#step(this.#loaded.engine);
          // A step may have needed no event from outside: let messages in before the next one.
          await nextTask();
        } else if (this.#inbox.length === 0) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } catch (error) {
      this.crash(error);
    }
  }

  #receive(page: ServedPage, data: unknown): void {
    const guarded = guardToWorker(data);
    if (!('message' in guarded)) {
      if (guarded.id === undefined) page.numIgnored += 1;
      else page.post({ type: 'error', id: guarded.id, error: { code: 'bad_request', message: guarded.problem } });
      return;
    }
    const { message } = guarded;
    if (message.type === 'hello') this.#greet(page, message);
    else if (page.greeting !== 'ours') refuse(page, message);
    else if (message.type === 'ping') page.post({ type: 'pong' });
    else if (message.type === 'connect') this.#connectTo(page, message.via);
    else this.#queue(page, message);
  }

  #queue(page: ServedPage, message: Queued): void {
    this.#inbox.push({ page, message, arrivedMs: this.#environment.now() });
    this.#wake();
  }

  #greet(page: ServedPage, { life, ...hello }: HelloMessage & { life: string | null }): void {
    if (page.hasLeft) return;
    const isFirst = page.greeting === 'none';
    page.greeting = isOurs(hello) ? 'ours' : 'other';
    page.post(HELLO);
    if (!isFirst) return;
    // With its owner, the worker ends as well.
    if (life !== null && !page.isOwner) this.#watch(page, life);
    this.#tellClients();
  }

  /** A page that is closed or has crashed says nothing, and its port does not either, but its locks are free. */
  #watch(page: ServedPage, life: string): void {
    const controller = new AbortController();
    page.atEnd(() => controller.abort());
    const { signal } = controller;
    this.#environment.locks
      ?.request(life, { mode: 'shared', signal }, () => this.#queue(page, { type: 'leave' }))
      .catch(() => undefined);
  }

  /** Only the worker's own page may bring others. */
  #connectTo(page: ServedPage, via: MessagePort | string): void {
    const { openBroadcast } = this.#environment;
    if (!page.isOwner || (typeof via === 'string' && openBroadcast === undefined)) {
      page.numIgnored += 1;
    } else if (typeof via !== 'string') {
      connectPort(this, via);
    } else if (openBroadcast !== undefined) {
      const channel = openBroadcast(via);
      const receive = this.connect((message) => channel.postMessage(message), { close: () => channel.close() });
      channel.onmessage = ({ data }) => receive(data);
      // It waits for a word.
      channel.postMessage(HELLO);
    }
  }

  #tell(message: FromWorker): void {
    for (const page of this.#pages) if (page.greeting === 'ours') page.post(message);
  }

  #tellClients(): void {
    const num = [...this.#pages].filter((page) => page.greeting === 'ours').length;
    this.#tell({ type: 'clients', num });
  }

  /** Ends everything of a page; the last one takes the engine with it. */
  #leave(page: ServedPage): void {
    this.#cancelAll(page);
    page.leave();
    if (!this.#pages.delete(page)) return;
    if (this.#pages.size === 0) this.#free();
    else if (this.#loaded !== undefined) this.#applySettings(this.#loaded.engine);
    this.#tellClients();
  }

  #cancelAll(page: ServedPage): void {
    for (const request of page.requests.values()) {
      this.#active.delete(request);
      this.#loaded?.engine.cancel(request);
    }
    page.requests.clear();
    page.listensToCache = false;
    page.listensToSteps = false;
    page.stepTarget = undefined;
  }

  #free(): void {
    this.#loaded?.engine.free();
    this.#loaded = undefined;
    this.#environment.releaseGpu?.();
    this.#active.clear();
    for (const page of this.#pages) page.requests.clear();
  }

  /** What the pages want together. */
  #applySettings(engine: WasmEngine): void {
    engine.setStepTarget(stepTargetOf(this.#pages));
    engine.setTracing([...this.#pages].some((page) => page.listensToSteps));
  }

  async #step(engine: WasmEngine): Promise<void> {
    try {
      const events = await this.#environment.whileWaiting(engine.step());
      // First, while the requests that end here have their names.
      this.#postSteps(engine);
      this.#postEvents(events);
      this.#postCacheEvents();
    } catch (error) {
      const record = recordOf(error);
      const requests = [...this.#active.keys()];
      this.#postEvents(requests.map((request) => ({ kind: 'failed' as const, request, error: record })));
      for (const request of requests) engine.cancel(request);
      // Whoever has it to itself can load it again; one that is shared has to end, or all go on with it.
      if (record.code === 'device_lost' && this.#loaded?.group != null) this.crash(record);
    }
  }

  /** To each page what is its own, under its own ids. */
  #postEvents(events: readonly RequestEvent[]): void {
    const byPage = new Map<ServedPage, RequestEvent[]>();
    for (const event of events) {
      const active = this.#active.get(event.request);
      if (active === undefined) continue;
      const { page, id } = active;
      const own = byPage.get(page) ?? [];
      own.push({ ...event, request: id });
      byPage.set(page, own);
      if (event.kind === 'finished') active.numLeft -= 1;
      if (event.kind !== 'failed' && active.numLeft > 0) continue;
      this.#active.delete(event.request);
      page.requests.delete(id);
    }
    for (const [page, own] of byPage) page.post({ type: 'events', events: own });
  }

  #postSteps(engine: WasmEngine): void {
    const listening = [...this.#pages].filter((page) => page.listensToSteps);
    if (listening.length === 0) return;
    const named = <T extends { request: number }>(answer: T): Omit<T, 'request'> & { request: string } => {
      return { ...answer, request: this.#active.get(answer.request)?.name ?? '' };
    };
    const steps = engine.takeTrace().map((step) => {
      return { ...step, parts: step.parts.map(named), preempted: step.preempted.map(named) };
    });
    const { timeOrigin } = this.#environment;
    if (steps.length > 0) for (const page of listening) page.post({ type: 'steps', steps, timeOrigin });
  }

  #postCacheEvents(): void {
    const listening = [...this.#pages].filter((page) => page.listensToCache);
    if (listening.length === 0 || this.#loaded === undefined) return;
    const events = this.#loaded.engine.cacheEvents();
    if (events.length > 0) for (const page of listening) page.post({ type: 'cacheEvents', events });
  }

  async #drain(): Promise<void> {
    for (let entry = this.#inbox.shift(); entry !== undefined; entry = this.#inbox.shift()) {
      const { page, message, arrivedMs } = entry;
      if (page.hasLeft) continue;
      if (message.type === 'cancel') {
        const request = page.requests.get(message.request);
        page.requests.delete(message.request);
        if (request !== undefined && this.#active.delete(request)) this.#loaded?.engine.cancel(request);
      } else if (message.type === 'stepTarget') {
        page.stepTarget = message.ms;
        this.#loaded?.engine.setStepTarget(stepTargetOf(this.#pages));
      } else if (message.type === 'leave') {
        this.#leave(page);
      } else {
        await this.#serve(page, message, arrivedMs);
      }
    }
  }

  async #serve(page: ServedPage, message: CallMessage, arrivedMs: number): Promise<void> {
    const { id } = message;
    try {
      const value = await this.#answer(page, message, arrivedMs);
      page.post({ type: 'result', id, value }, buffersOf(value));
      this.#postCacheEvents();
    } catch (error) {
      page.post({ type: 'error', id, error: recordOf(error) });
    }
    if (message.type === 'unload' && !page.isOwner) this.#leave(page);
  }

  async #answer(page: ServedPage, message: CallMessage, arrivedMs: number): Promise<Calls[CallType]['result']> {
    switch (message.type) {
      case 'load':
        return this.#load(page, message);
      case 'inspect':
        return this.#loader.inspect(message.source);
      case 'plan':
        return this.#loader.plan(message);
      case 'submit':
        return { promptTokens: this.#submit(page, message, arrivedMs) };
      case 'stepListen':
        this.#engine();
        page.listensToSteps = message.isOn;
        this.#applySettings(this.#engine());
        return null;
      case 'cacheSave':
        return this.#environment.whileWaiting(saveCache(this.#engine(), message.salt, message.prefix));
      case 'cacheRestore':
        return this.#environment.whileWaiting(restoreCache(this.#engine(), message.data, message.cache));
      case 'cacheListen':
        // What happened before is nothing to a new listener.
        this.#postCacheEvents();
        this.#engine().cacheEvents();
        page.listensToCache = message.isOn;
        return null;
      case 'modelsList':
        return this.#loader.stored().list();
      case 'modelsFind':
        return (await this.#loader.stored().find(message.source))?.model ?? null;
      case 'modelsDelete':
        return this.#loader.stored().delete(message.source);
      case 'modelsDownload':
        return (await this.#loader.download(message.source)).model;
      case 'unload':
        this.#cancelAll(page);
        if (page.isOwner) this.#close(page);
        return null;
      default:
        return callEngine(this.#engine(), this.#loaded?.info.id ?? '', message);
    }
  }

  async #load(page: ServedPage, message: Extract<CallMessage, { type: 'load' }>): Promise<EngineInfo> {
    const { group } = message;
    if (this.#loaded !== undefined) {
      if (group !== null && group === this.#loaded.group) return this.#loaded.info;
      throw new PagewiseError('bad_request', 'this worker has a model already');
    }
    // It failed for the owner, which is about to end the worker.
    const isGuest = !page.isOwner && [...this.#pages].some(({ isOwner }) => isOwner);
    if (isGuest) throw new PagewiseError('leader_lost', 'the tab that leads could not load the model');
    const [engine, info] = await this.#loader.load(message);
    this.#loaded = { engine, info, group };
    this.#applySettings(engine);
    return info;
  }

  #submit(page: ServedPage, message: Extract<CallMessage, { type: 'submit' }>, arrivedMs: number): number {
    const { id, request, name } = message;
    if (page.requests.has(id)) throw new PagewiseError('bad_request', `submit: there is a request ${id} already`);
    const own = this.#nextRequest++;
    const promptTokens = this.#engine().submit(own, request, arrivedMs);
    this.#active.set(own, { page, id, name, numLeft: request.numChoices });
    page.requests.set(id, own);
    return promptTokens;
  }

  /** The owner unloads: the worker ends with it, and others have to look for another one. */
  #close(owner: ServedPage): void {
    this.#free();
    const error: ErrorRecord = { code: 'leader_lost', message: 'the tab that had the engine has unloaded it' };
    for (const page of this.#pages)
      if (page !== owner && page.greeting === 'ours') page.post({ type: 'crashed', error });
  }

  #engine(): WasmEngine {
    if (this.#loaded === undefined) throw new PagewiseError('bad_request', 'no model is loaded');
    return this.#loaded.engine;
  }
}

/** Serves a page through a port. */
export function connectPort(loop: WorkerLoop, port: MessagePort): (data: unknown) => void {
  const receive = loop.connect((message, transfer) => port.postMessage(message, transfer), {
    close: () => port.close(),
  });
  port.onmessage = ({ data }) => receive(data);
  return receive;
}

/** A page of another version, or one that does not say: its calls are answered, the rest is ignored. */
function refuse(page: ServedPage, message: ToWorker): void {
  if (!('id' in message)) {
    page.numIgnored += 1;
    return;
  }
  page.post({ type: 'error', id: message.id, error: otherPage() });
}
