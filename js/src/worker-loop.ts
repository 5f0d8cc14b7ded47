/**
 * The worker's loop: messages queue in an inbox that is drained at the top of a step; nothing acts in between.
 */

import { type ErrorRecord, isErrorRecord, PagewiseError } from './errors.js';
import { type GrammarModule, Grammars } from './grammars.js';
import type {
  AdapterProbe,
  CallMessage,
  Calls,
  CallType,
  EngineOptions,
  EngineRequest,
  FromWorker,
  RequestEvent,
  SourceSpec,
  ToWorker,
} from './protocol.js';
import { ModelReader } from './reader.js';
import { NETWORK, type NetworkEnvironment } from './retry.js';
import { restoreCache, saveCache } from './saved-cache.js';
import type { StorageEnvironment } from './storage.js';
import { type FoundModel, StoredModels } from './stored-models.js';
import type { TuningMemory } from './tuning-memory.js';
import type { LoadPhase, MemoryPlan } from './types.js';
import type { WasmEngine, WasmModule } from './wasm.js';

/** What the loop needs from outside. */
export interface WorkerEnvironment {
  /** Starts the WebAssembly module; called at the first message that needs it. */
  loadModule(): Promise<WasmModule>;
  /** Starts the module that compiles constraints; called at the first request that has one. */
  loadGrammars(): Promise<GrammarModule>;
  /** Describes the GPU, or throws `no_webgpu`. */
  probeAdapter(): Promise<AdapterProbe>;
  /** Sends a message to the page. */
  post(message: FromWorker): void;
  /** Milliseconds on the clock that the module uses. */
  now(): number;
  /** When that clock was 0, in milliseconds since 1970. */
  readonly timeOrigin: number;
  /** Waits for work on the GPU. */
  whileWaiting<T>(work: Promise<T>): Promise<T>;
  /** Where measured choices of kernels are kept; nowhere by default. */
  tunings?: TuningMemory;
  /** Where models are stored; nowhere by default. */
  storage?: StorageEnvironment;
  /** The network; the real one by default. */
  network?: NetworkEnvironment;
}

/** A request that the engine has. */
interface ActiveRequest {
  /** What the page calls it. */
  name: string;
  /** Answers that have not ended yet. */
  numLeft: number;
}

/** The loop. It holds at most one engine. */
export class WorkerLoop {
  readonly #environment: WorkerEnvironment;
  readonly #inbox: { message: ToWorker; arrivedMs: number }[] = [];
  readonly #active = new Map<number, ActiveRequest>();
  readonly #models: StoredModels | undefined;
  readonly #grammars: Grammars;
  #module: Promise<WasmModule> | undefined;
  #engine: WasmEngine | undefined;
  #wake: () => void = () => undefined;
  #hasCrashed = false;
  #modelId = '';
  #listensToCache = false;
  #listensToSteps = false;

  /** Runs nothing yet: see {@link run}. */
  constructor(environment: WorkerEnvironment) {
    this.#environment = environment;
    const { storage, network } = environment;
    this.#grammars = new Grammars(() => environment.loadGrammars());
    if (storage !== undefined) this.#models = new StoredModels(storage, network);
  }

  /** Queues a message. */
  receive(message: ToWorker): void {
    this.#inbox.push({ message, arrivedMs: this.#environment.now() });
    this.#wake();
  }

  /** Says that the module is beyond use and stops the loop; only the first crash is told. */
  crash(error: unknown): void {
    if (this.#hasCrashed) return;
    this.#hasCrashed = true;
    const text = error instanceof Error ? error.message : String(error);
    this.#environment.post({ type: 'crashed', message: `the engine crashed: ${text}` });
  }

  /** Serves until a crash. */
  async run(): Promise<void> {
    try {
      while (!this.#hasCrashed) {
        await this.#drain();
        if (this.#engine?.hasWork()) {
          await this.#step(this.#engine);
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

  async #step(engine: WasmEngine): Promise<void> {
    try {
      const events = await this.#environment.whileWaiting(engine.step());
      // First, while the requests that end here have their names.
      this.#postSteps(engine);
      for (const event of events) this.#note(event);
      if (events.length > 0) this.#environment.post({ type: 'events', events });
      this.#postCacheEvents();
    } catch (error) {
      const record = recordOf(error);
      const requests = [...this.#active.keys()];
      const events = requests.map((request) => ({ kind: 'failed' as const, request, error: record }));
      for (const request of requests) engine.cancel(request);
      this.#active.clear();
      this.#environment.post({ type: 'events', events });
    }
  }

  /** Takes note of the end of an answer. */
  #note(event: RequestEvent): void {
    const active = this.#active.get(event.request);
    if (active === undefined) return;
    if (event.kind === 'finished') active.numLeft -= 1;
    if (event.kind === 'failed' || active.numLeft === 0) this.#active.delete(event.request);
  }

  #postSteps(engine: WasmEngine): void {
    if (!this.#listensToSteps) return;
    const named = <T extends { request: number }>(answer: T): Omit<T, 'request'> & { request: string } => {
      return { ...answer, request: this.#active.get(answer.request)?.name ?? '' };
    };
    const steps = engine.takeTrace().map((step) => {
      return { ...step, parts: step.parts.map(named), preempted: step.preempted.map(named) };
    });
    const { timeOrigin } = this.#environment;
    if (steps.length > 0) this.#environment.post({ type: 'steps', steps, timeOrigin });
  }

  async #drain(): Promise<void> {
    for (let entry = this.#inbox.shift(); entry !== undefined; entry = this.#inbox.shift()) {
      const { message, arrivedMs } = entry;
      if (message.type === 'cancel') {
        this.#grammars.cancel(message.request);
        if (this.#active.delete(message.request)) this.#engine?.cancel(message.request);
        continue;
      }
      if (message.type === 'stepTarget') {
        this.#engine?.setStepTarget(message.ms ?? undefined);
        continue;
      }
      if (this.#waitsForGrammars(message, arrivedMs)) continue;
      try {
        const value = await this.#answer(message, arrivedMs);
        this.#environment.post({ type: 'result', id: message.id, value });
        this.#postCacheEvents();
      } catch (error) {
        this.#environment.post({ type: 'error', id: message.id, error: recordOf(error) });
      }
    }
  }

  /** Whether a request has to wait for what compiles its constraint: then it comes again. */
  #waitsForGrammars(message: CallMessage, arrivedMs: number): boolean {
    if (message.type !== 'submit' || !needsGrammars(message.request)) return false;
    if (this.#engine === undefined || this.#grammars.isReady(this.#engine)) return false;
    this.#grammars.waitFor(message.id, (failure) => {
      if (failure === undefined) this.#inbox.push({ message, arrivedMs });
      else this.#environment.post({ type: 'error', id: message.id, error: failure.toRecord() });
      this.#wake();
    });
    return true;
  }

  #postCacheEvents(): void {
    if (!this.#listensToCache || this.#engine === undefined) return;
    const events = this.#engine.cacheEvents();
    if (events.length > 0) this.#environment.post({ type: 'cacheEvents', events });
  }

  async #answer(message: CallMessage, arrivedMs: number): Promise<Calls[CallType]['result']> {
    switch (message.type) {
      case 'load':
        return this.#load(message);
      case 'inspect':
        return this.#withReader(await this.#local(message.source), (module, reader) => module.inspect(reader));
      case 'plan':
        return this.#plan(message);
      case 'submit': {
        const promptTokens = this.#loaded().submit(message.id, message.request, arrivedMs);
        this.#active.set(message.id, { name: message.name, numLeft: message.request.numChoices });
        return { promptTokens };
      }
      case 'tokenize':
        return [...this.#loaded().tokenize(message.text, message.addSpecial, message.parseSpecial)];
      case 'detokenize':
        return this.#loaded().detokenize(Uint32Array.from(message.ids), message.skipSpecial);
      case 'applyTemplate':
        return this.#loaded().applyTemplate(message.messages, message.addGenerationPrompt);
      case 'metrics':
        return this.#loaded().metrics();
      case 'metricsText':
        return this.#loaded().metricsText(this.#modelId);
      case 'stepListen':
        this.#loaded().setTracing(message.isOn);
        this.#listensToSteps = message.isOn;
        return null;
      case 'logits':
        return this.#loaded().logits(Uint32Array.from(message.ids), Uint32Array.from(message.positions));
      case 'cacheStats':
        return this.#loaded().cacheStats();
      case 'cacheBlocks':
        return this.#loaded().cacheBlocks();
      case 'cachePrefixes':
        return this.#loaded().cachePrefixes();
      case 'cacheExplain':
        return this.#loaded().cacheExplain(message.request);
      case 'cachePin':
        return this.#loaded().cachePin(message.salt, message.prefix);
      case 'cacheUnpin':
        return this.#loaded().cacheUnpin(message.salt, message.prefix);
      case 'cacheEvict':
        return this.#loaded().cacheEvict(message.salt, message.prefix);
      case 'cacheClear':
        return this.#loaded().cacheClear();
      case 'cacheSave':
        return this.#environment.whileWaiting(saveCache(this.#loaded(), message.salt, message.prefix));
      case 'cacheRestore':
        return this.#environment.whileWaiting(restoreCache(this.#loaded(), message.data, message.cache));
      case 'cacheListen':
        // What happened before is nothing to a new listener.
        this.#loaded().cacheEvents();
        this.#listensToCache = message.isOn;
        return null;
      case 'modelsList':
        return this.#stored().list();
      case 'modelsFind':
        return (await this.#stored().find(message.source))?.model ?? null;
      case 'modelsDelete':
        return this.#stored().delete(message.source);
      case 'modelsDownload':
        return (await this.#download(message.source)).model;
      case 'unload':
        this.#engine?.free();
        this.#engine = undefined;
        this.#active.clear();
        return null;
    }
  }

  /** Plans for the GPU that is there, else for the smallest that WebGPU allows. */
  async #plan(message: Extract<CallMessage, { type: 'plan' }>): Promise<Calls['plan']['result']> {
    const adapter = await this.#environment.probeAdapter().catch(() => undefined);
    return this.#planFor(await this.#local(message.source), message.options, adapter);
  }

  #planFor(source: SourceSpec, given: EngineOptions, adapter: AdapterProbe | undefined): Promise<MemoryPlan> {
    const options = adapter === undefined ? given : { ...given, adapter };
    return this.#withReader(source, (module, reader) => module.plan(reader, options));
  }

  /** The source as it is stored, else as it is. */
  async #local(source: SourceSpec): Promise<SourceSpec> {
    // What cannot be found, for whatever reason, is read from where it comes from.
    const found = await this.#models?.find(source).catch(() => undefined);
    if (found !== undefined) return storedSource(source, found);
    if (source.failure !== undefined) throw PagewiseError.fromRecord(source.failure);
    return source;
  }

  /** The source in storage, downloaded if need be and if it can run here. */
  async #kept(source: SourceSpec, options: EngineOptions, adapter: AdapterProbe): Promise<SourceSpec> {
    const local = await this.#local(source);
    if (local.parts.every(({ kind }) => kind === 'blob')) return local;
    await this.#planFor(local, options, adapter);
    return storedSource(source, await this.#download(source));
  }

  #download(source: SourceSpec): Promise<FoundModel> {
    const onProgress = (loadedBytes: number, totalBytes: number): void =>
      this.#environment.post({ type: 'progress', progress: { phase: 'download', loadedBytes, totalBytes } });
    return this.#stored().download(source, { onProgress });
  }

  #stored(): StoredModels {
    if (this.#models === undefined) throw new PagewiseError('storage_full', 'there is no storage for models here');
    return this.#models;
  }

  async #load(message: Extract<CallMessage, { type: 'load' }>): Promise<Calls['load']['result']> {
    if (this.#engine !== undefined) throw new PagewiseError('bad_request', 'this worker has a model already');
    const probe = await this.#environment.probeAdapter();
    const { source: given, store } = message;
    const source = store ? await this.#kept(given, message.options, probe) : await this.#local(given);
    const remembered = message.options.autotune ? await this.#environment.tunings?.recall() : undefined;
    const options = { ...message.options, adapter: probe, remembered: remembered ?? {} };
    const onProgress = (phase: LoadPhase, loadedBytes: number, totalBytes: number): void =>
      this.#environment.post({ type: 'progress', progress: { phase, loadedBytes, totalBytes } });
    const loading = this.#withReader(source, (module, reader) => module.loadEngine(reader, options, onProgress));
    const engine = await this.#environment.whileWaiting(loading);
    this.#engine = engine;
    const measured = engine.measuredTuning();
    if (measured !== null) await this.#environment.tunings?.remember(measured.key, measured.choice);
    const { vendor, architecture, description, isSoftware, features } = probe;
    const info = engine.info();
    const { id, name } = source;
    this.#modelId = id;
    const adapter = { vendor, architecture, description, isSoftware, features };
    return { ...info, id, name: name || info.name || id, adapter };
  }

  async #withReader<T>(source: SourceSpec, use: (module: WasmModule, reader: ModelReader) => Promise<T>): Promise<T> {
    this.#module ??= this.#environment.loadModule();
    const module = await this.#module;
    const reader = new ModelReader(source, this.#environment.network ?? NETWORK);
    try {
      return await use(module, reader);
    } catch (error) {
      // The module knows the failure of a read as `network` and a text; the reader knows its URL, status and offset.
      throw isErrorRecord(error) && error.code === 'network' ? (reader.failure ?? error) : error;
    } finally {
      reader.close();
    }
  }

  #loaded(): WasmEngine {
    if (this.#engine === undefined) throw new PagewiseError('bad_request', 'no model is loaded');
    return this.#engine;
  }
}

function storedSource(source: SourceSpec, { model, parts }: FoundModel): SourceSpec {
  const name = model.name === model.id ? {} : { name: model.name };
  return { id: source.id, ...name, parts, headers: {} };
}

/** An engine's error as a record; anything else is thrown on and ends the loop. */
function recordOf(error: unknown): ErrorRecord {
  if (error instanceof PagewiseError) return error.toRecord();
  if (isErrorRecord(error)) {
    const { code, message, retryAfterMs } = error;
    return { code, message, ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}) };
  }
  throw error;
}

/** Whether an answer is drawn by a grammar: also where it has to be a call, or its arguments keep to a schema. */
function needsGrammars({ constraint, tools }: EngineRequest): boolean {
  const isStrict = tools?.list.some((tool) => tool.function.strict === true) ?? false;
  return constraint !== undefined || tools?.isRequired === true || isStrict;
}

/** Resolves in a later task, after the messages that wait now. `setTimeout` would wait 4 ms. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
