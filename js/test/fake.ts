import type { FromWorker, ToWorker } from '../src/protocol.js';
import type { NetworkEnvironment } from '../src/retry.js';
import type { StorageEnvironment } from '../src/storage.js';
import type { TuningMemory } from '../src/tuning-memory.js';
import type { WasmEngine, WasmModule } from '../src/wasm.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { FakeEngine } from './fake-engine.js';

/** What the fake does. */
export interface FakeOptions {
  answer?: string;
  prefillSteps?: number;
  /** Replaces parts of the module. */
  module?: Partial<WasmModule>;
  /** Replaces parts of the engine. */
  engine?: Partial<WasmEngine>;
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
  readonly #receive: (data: unknown) => void;
  /** Of everything that was sent, what was handed over. */
  readonly transferred: Transferable[] = [];

  constructor(options: FakeOptions = {}) {
    this.engine = new FakeEngine(options);
    const post = (message: FromWorker, transfer: Transferable[]): void => {
      const copy = structuredClone(message, { transfer });
      this.transferred.push(...transfer);
      setTimeout(() => this.isTerminated || this.onmessage?.({ data: copy }));
    };
    const loop = new WorkerLoop({
      loadModule: async () => ({ ...this.engine.module(), ...options.module }),
      probeAdapter: options.probeAdapter ?? (async () => PROBE),
      now: () => performance.now(),
      timeOrigin: performance.timeOrigin,
      whileWaiting: (work) => work,
      ...(options.tunings === undefined ? {} : { tunings: options.tunings }),
      ...(options.storage === undefined ? {} : { storage: options.storage }),
      ...(options.network === undefined ? {} : { network: options.network }),
    });
    this.#receive = loop.connect(post, { isOwner: true });
    void loop.run();
  }

  postMessage(message: ToWorker, transfer: Transferable[] = []): void {
    const copy = structuredClone(message, { transfer });
    this.received.push(copy);
    setTimeout(() => this.isTerminated || this.#receive(copy));
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
