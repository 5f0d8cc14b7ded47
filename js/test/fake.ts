import type { GrammarModule } from '../src/grammars.js';
import type { EngineRequest, FromWorker, RequestEvent, ToWorker } from '../src/protocol.js';
import type { NetworkEnvironment } from '../src/retry.js';
import type { StorageEnvironment } from '../src/storage.js';
import type { TuningMemory } from '../src/tuning-memory.js';
import type { FinishReason } from '../src/types.js';
import type { WasmEngine, WasmModule } from '../src/wasm.js';
import type { WorkerEnvironment } from '../src/worker-environment.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { FakeBus } from './fake-bus.js';
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
  locks?: Pick<LockManager, 'request'>;
  bus?: FakeBus;
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

/** What a worker gets from outside. */
export function fakeEnvironment(options: FakeOptions, engine: FakeEngine): WorkerEnvironment {
  const { tunings, storage, network, locks } = options;
  return {
    loadModule: async () => ({ ...engine.module(), ...options.module }),
    loadGrammars: options.loadGrammars ?? (async () => ({ createGrammars: null })),
    probeAdapter: options.probeAdapter ?? (async () => PROBE),
    now: () => performance.now(),
    timeOrigin: performance.timeOrigin,
    whileWaiting: (work) => work,
    releaseGpu: () => {
      engine.numReleases += 1;
    },
    ...(tunings === undefined ? {} : { tunings }),
    ...(storage === undefined ? {} : { storage }),
    ...(network === undefined ? {} : { network }),
    ...(locks === undefined ? {} : { locks }),
  };
}

/** A worker as the page sees it, with a record of what was said. */
export class FakeWorker {
  onmessage: ((event: { data: FromWorker }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  onmessageerror: (() => void) | null = null;
  readonly received: ToWorker[] = [];
  isTerminated = false;
  /** Whether nothing arrives on either side for now: what was sent is lost. */
  isFrozen = false;
  readonly engine: FakeEngine;
  readonly #receive: (data: unknown) => void;
  /** Of everything that was sent, what was handed over. */
  readonly transferred: Transferable[] = [];

  constructor(options: FakeOptions = {}) {
    this.engine = new FakeEngine(options);
    const post = (message: FromWorker, transfer: Transferable[]): void => {
      const copy = structuredClone(message, { transfer });
      this.transferred.push(...transfer);
      setTimeout(() => this.#isRunning && this.onmessage?.({ data: copy }));
    };
    const openBroadcast = (name: string): BroadcastChannel =>
      (options.bus ?? new FakeBus()).open(name, () => this.#isRunning);
    const loop = new WorkerLoop({ ...fakeEnvironment(options, this.engine), openBroadcast });
    this.#receive = loop.connect(post, { isOwner: true });
    void loop.run();
  }

  postMessage(message: ToWorker, transfer: Transferable[] = []): void {
    const copy = structuredClone(message, { transfer });
    this.received.push(copy);
    if (copy?.type === 'connect' && typeof copy.via !== 'string')
      copy.via = behindRelay(copy.via, () => this.#isRunning);
    setTimeout(() => this.#isRunning && this.#receive(copy));
  }

  get #isRunning(): boolean {
    return !this.isTerminated && !this.isFrozen;
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** For `createWorker`. */
  get asWorker(): Worker {
    return this as unknown as Worker;
  }
}

/** Passes messages on between two ports while `isRunning`; answers the second one's other end. */
export function behindRelay(port: MessagePort, isRunning: () => boolean): MessagePort {
  const { port1, port2 } = new MessageChannel();
  const ports = (data: unknown): Transferable[] => {
    const { via } = (data ?? {}) as { via?: unknown };
    return via instanceof MessagePort ? [via] : [];
  };
  port.onmessage = ({ data }) => isRunning() && port1.postMessage(data, ports(data));
  port1.onmessage = ({ data }) => isRunning() && port.postMessage(data, ports(data));
  return port2;
}

/** A blob that is long enough for the fake. */
export function fakeModel(length = 64): File {
  return new File([new Uint8Array(length)], 'fake-model.gguf', { lastModified: 0 });
}
