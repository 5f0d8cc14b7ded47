/**
 * What the worker's loop needs from outside, and where a browser has it.
 */

import initGrammars, * as grammars from '../wasm/grammar.js';
import init, * as module from '../wasm/pagewise.js';
import { PagewiseError } from './errors.js';
import { Devices, probeAdapter } from './gpu.js';
import type { GrammarModule } from './grammars.js';
import type { AdapterProbe } from './protocol.js';
import type { NetworkEnvironment } from './retry.js';
import { browserStorage, type StorageEnvironment } from './storage.js';
import { browserMemory, type TuningMemory } from './tuning-memory.js';
import type { WasmModule } from './wasm.js';

/** What the loop needs from outside. */
export interface WorkerEnvironment {
  /** Starts the WebAssembly module; called at the first message that needs it. */
  loadModule(): Promise<WasmModule>;
  /** Starts the module that compiles constraints; called at the first request that has one. */
  loadGrammars(): Promise<GrammarModule>;
  /** Describes the GPU, or throws `no_webgpu`. */
  probeAdapter(): Promise<AdapterProbe>;
  /** Milliseconds on the clock that the module uses. */
  now(): number;
  /** When that clock was 0, in milliseconds since 1970. */
  readonly timeOrigin: number;
  /** Waits for work on the GPU. */
  whileWaiting<T>(work: Promise<T>): Promise<T>;
  /** Frees all memory of the GPU that the module has given up. */
  releaseGpu?(): void;
  /** Web Locks, by which pages are known to be there. */
  locks?: Pick<LockManager, 'request'> | undefined;
  /** Opens a channel to a page that has no port. */
  openBroadcast?: (name: string) => BroadcastChannel;
  /** Where measured choices of kernels are kept; nowhere by default. */
  tunings?: TuningMemory;
  /** Where models are stored; nowhere by default. */
  storage?: StorageEnvironment;
  /** The network; the real one by default. */
  network?: NetworkEnvironment;
}

/** The browser's. `onPanic` is told when the module is beyond use. */
export function browserEnvironment(onPanic: (message: string) => void): WorkerEnvironment {
  const devices = new Devices(globalThis as never);
  return {
    loadModule: () => startModule(onPanic),
    loadGrammars: async () => {
      await initGrammars();
      return grammars;
    },
    probeAdapter: () => probeAdapter(globalThis as never),
    now: () => performance.now(),
    timeOrigin: performance.timeOrigin,
    whileWaiting: (work) => devices.whileWaiting(work),
    releaseGpu: () => devices.release(),
    locks: globalThis.navigator.locks as LockManager | undefined,
    openBroadcast: (name) => new BroadcastChannel(name),
    tunings: browserMemory(globalThis.caches, globalThis.location.origin, globalThis.navigator.userAgent),
    storage: browserStorage(globalThis.navigator, globalThis.indexedDB),
  };
}

async function startModule(onPanic: (message: string) => void): Promise<WasmModule> {
  try {
    await init();
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const hint = "is pagewise_bg.wasm served, and does the page's policy allow 'wasm-unsafe-eval'?";
    throw new PagewiseError('worker_crashed', `the WebAssembly module could not be started (${text}): ${hint}`, {
      cause,
    });
  }
  module.setPanicHandler(onPanic);
  return module as unknown as WasmModule;
}
