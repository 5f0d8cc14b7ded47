import type { GrammarModule } from '../src/grammars.js';
import type { EngineRequest, FromWorker, RequestEvent, ToWorker } from '../src/protocol.js';
import type { NetworkEnvironment } from '../src/retry.js';
import type { StorageEnvironment } from '../src/storage.js';
import type { TuningMemory } from '../src/tuning-memory.js';
import type { FinishReason } from '../src/types.js';
import type { WasmEngine, WasmModule } from '../src/wasm.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { FakeEngine } from './fake-engine.js';

type Scriptable = Extract<RequestEvent, { kind: 'text' | 'call' | 'arguments' | 'malformed' }>;
type WithoutOwner<T> = T extends unknown ? Omit<T, 'request' | 'choice'> : never;

/** An event of nobody's yet. */
export type ScriptedEvent = WithoutOwner<Scriptable>;

/** What an answer brings, an event a step, and why it ends then. */
export interface Script {
  events: ScriptedEvent[];
  reason: FinishReason;
}

/** What the fake does. */
export interface FakeOptions {
  answer?: string;
  prefillSteps?: number;
  /** What answers bring in place of letters. */
  script?: Script | ((request: EngineRequest) => Script | undefined);
  /** Replaces parts of the module. */
  module?: Partial<WasmModule>;
  /** Replaces parts of the engine. */
  engine?: Partial<WasmEngine>;
  loadGrammars?: () => Promise<GrammarModule>;
  network?: NetworkEnvironment;
  tunings?: TuningMemory;
  storage?: StorageEnvironment;
  probeAdapter?: () => Promise<never>;
}

const PROBE = {
  vendor: 'fake',
  architecture: 'cpu',
  description: 'Fake GPU',
  isSoftware: true,
  features: ['subgroups'],
  subgroups: true,
  subgroupMinSize: 4,
  subgroupMaxSize: 4,
  maxBufferBytes: 1000,
};

/** A worker as the page sees it, with a record of what was said. */
export class FakeWorker {
  onmessage: ((event: { data: FromWorker }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  onmessageerror: (() => void) | null = null;
  readonly received: ToWorker[] = [];
  isTerminated = false;
  readonly engine: FakeEngine;
  readonly #loop: WorkerLoop;

  constructor(options: FakeOptions = {}) {
    this.engine = new FakeEngine(options);
    const post = (message: FromWorker): void => {
      const copy = structuredClone(message);
      setTimeout(() => this.isTerminated || this.onmessage?.({ data: copy }));
    };
    this.#loop = new WorkerLoop({
      loadGrammars: options.loadGrammars ?? (async () => ({ createGrammars: null })),
      loadModule: async () => ({ ...this.engine.module(), ...options.module }),
      probeAdapter: options.probeAdapter ?? (async () => PROBE),
      post,
      now: () => performance.now(),
      timeOrigin: performance.timeOrigin,
      whileWaiting: (work) => work,
      ...(options.tunings === undefined ? {} : { tunings: options.tunings }),
      ...(options.storage === undefined ? {} : { storage: options.storage }),
      ...(options.network === undefined ? {} : { network: options.network }),
    });
    void this.#loop.run();
  }

  postMessage(message: ToWorker): void {
    const copy = structuredClone(message);
    this.received.push(copy);
    setTimeout(() => this.isTerminated || this.#loop.receive(copy));
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** For `createWorker`. */
  get asWorker(): Worker {
    return this as unknown as Worker;
  }
}

/** A blob that is long enough for the fake. */
export function fakeModel(length = 64): File {
  return new File([new Uint8Array(length)], 'fake-model.gguf');
}
