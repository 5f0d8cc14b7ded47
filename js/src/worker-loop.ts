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
import type { CallMessage, Calls, CallType, FromWorker, HelloMessage, ToWorker } from './protocol.js';
import { Requests } from './requests.js';
import { restoreCache, saveCache } from './saved-cache.js';
import { type SendToPage, ServedPage, stepTargetOf } from './served-page.js';
import type { EngineInfo } from './types.js';
import type { WasmEngine } from './wasm.js';
import type { WorkerEnvironment } from './worker-environment.js';

/** What waits for the end of a step. */
type Queued = CallMessage | Extract<ToWorker, { type: 'cancel' | 'stepTarget' | 'leave' }>;

/** A message in the inbox. */
interface Entry<T = Queued> {
  page: ServedPage;
  message: T;
  arrivedMs: number;
  /** The worker's id of a request that comes again, after it has waited. */
  waited?: number;
}

/** The loop. It holds at most one engine. */
export class WorkerLoop {
  readonly #environment: WorkerEnvironment;
  readonly #onCrash: () => void;
  readonly #inbox: Entry[] = [];
  readonly #pages = new Set<ServedPage>();
  readonly #requests: Requests;
  readonly #loader: ModelLoader;
  #loaded: { engine: WasmEngine; info: EngineInfo; group: string | null } | undefined;
  #wake: () => void = () => undefined;
  #hasCrashed = false;

  /** Runs nothing yet: see {@link run}. `onCrash` is called after all pages were told. */
  constructor(environment: WorkerEnvironment, onCrash: () => void = () => undefined) {
    this.#environment = environment;
    this.#onCrash = onCrash;
    this.#requests = new Requests(() => environment.loadGrammars());
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
    this.#enqueue({ page, message, arrivedMs: this.#environment.now() });
  }

  #enqueue(entry: Entry): void {
    this.#inbox.push(entry);
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
    this.#requests.cancelAll(this.#loaded?.engine, page);
    page.listensToCache = false;
    page.listensToSteps = false;
    page.stepTarget = undefined;
  }

  #free(): void {
    for (const page of this.#pages) this.#requests.cancelAll(this.#loaded?.engine, page);
    this.#loaded?.engine.free();
    this.#loaded = undefined;
    this.#environment.releaseGpu?.();
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
      this.#requests.tell(events);
      this.#postCacheEvents();
    } catch (error) {
      const record = recordOf(error);
      this.#requests.failAll(engine, record);
      // Whoever has it to itself can load it again; one that is shared has to end, or all go on with it.
      if (record.code === 'device_lost' && this.#loaded?.group != null) this.crash(record);
    }
  }

  #postSteps(engine: WasmEngine): void {
    const listening = [...this.#pages].filter((page) => page.listensToSteps);
    if (listening.length === 0) return;
    const steps = engine.takeTrace().map((step) => {
      const parts = step.parts.map((part) => this.#requests.named(part));
      return { ...step, parts, preempted: step.preempted.map((answer) => this.#requests.named(answer)) };
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
      const { page, message } = entry;
      if (page.hasLeft) continue;
      if (message.type === 'cancel') {
        this.#requests.cancel(this.#loaded?.engine, page, message.request);
      } else if (message.type === 'stepTarget') {
        page.stepTarget = message.ms;
        this.#loaded?.engine.setStepTarget(stepTargetOf(this.#pages));
      } else if (message.type === 'leave') {
        this.#leave(page);
      } else {
        await this.#serve({ ...entry, message });
      }
    }
  }

  async #serve(entry: Entry<CallMessage>): Promise<void> {
    const { page, message } = entry;
    const { id } = message;
    try {
      if (this.#waits(entry)) return;
      const value = await this.#answer(entry);
      page.post({ type: 'result', id, value }, buffersOf(value));
      this.#postCacheEvents();
    } catch (error) {
      page.post({ type: 'error', id, error: recordOf(error) });
    }
    if (message.type === 'unload' && !page.isOwner) this.#leave(page);
  }

  /** Whether a request has to wait for what compiles its constraint: then it comes again. */
  #waits(entry: Entry<CallMessage>): boolean {
    const { page, message } = entry;
    if (message.type !== 'submit') return false;
    return this.#requests.waits(this.#engine(), page, message, (own) => this.#enqueue({ ...entry, waited: own }));
  }

  async #answer(entry: Entry<CallMessage>): Promise<Calls[CallType]['result']> {
    const { page, message, arrivedMs, waited } = entry;
    switch (message.type) {
      case 'load':
        return this.#load(page, message);
      case 'inspect':
        return this.#loader.inspect(message.source);
      case 'plan':
        return this.#loader.plan(message);
      case 'submit':
        return { promptTokens: this.#requests.submit(this.#engine(), page, message, arrivedMs, waited) };
      case 'stepListen':
        this.#engine();
        page.listensToSteps = message.isOn;
        this.#applySettings(this.#engine());
        return null;
      case 'cacheBlocks': {
        const named = <T extends { request: number }>(holder: T) => this.#requests.named(holder);
        return this.#engine()
          .cacheBlocks()
          .map((block) => ({ ...block, holders: block.holders.map(named) }));
      }
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
