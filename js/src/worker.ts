/**
 * The worker's script: puts the WebAssembly module, WebGPU and the page together in a {@link WorkerLoop}.
 */

import initGrammars, * as grammars from '../wasm/grammar.js';
import init, * as module from '../wasm/pagewise.js';
import { PagewiseError } from './errors.js';
import { Devices, probeAdapter } from './gpu.js';
import type { FromWorker, ToWorker } from './protocol.js';
import { browserStorage } from './storage.js';
import { browserMemory } from './tuning-memory.js';
import type { WasmModule } from './wasm.js';
import { WorkerLoop } from './worker-loop.js';

/** What is used of a worker's global scope; the DOM's types know only the page's. */
interface WorkerScope {
  postMessage(message: FromWorker): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<ToWorker>) => void): void;
  addEventListener(type: 'error', listener: (event: ErrorEvent) => void): void;
  addEventListener(type: 'unhandledrejection', listener: (event: PromiseRejectionEvent) => void): void;
}

const scope = globalThis as unknown as WorkerScope;

const devices = new Devices(globalThis as never);

const loop = new WorkerLoop({
  loadModule: startModule,
  loadGrammars: async () => {
    await initGrammars();
    return grammars;
  },
  probeAdapter: () => probeAdapter(globalThis as never),
  post: (message) => scope.postMessage(message),
  now: () => performance.now(),
  timeOrigin: performance.timeOrigin,
  whileWaiting: (work) => devices.whileWaiting(work),
  tunings: browserMemory(globalThis.caches, globalThis.location.origin, globalThis.navigator.userAgent),
  storage: browserStorage(globalThis.navigator, globalThis.indexedDB),
});

scope.addEventListener('message', (event) => loop.receive(event.data));
// A panic in a Rust future leaves its promise pending for ever and surfaces only here.
scope.addEventListener('error', (event) => loop.crash(event.message));
scope.addEventListener('unhandledrejection', (event) => loop.crash(event.reason));
void loop.run();

async function startModule(): Promise<WasmModule> {
  try {
    await init();
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const hint = "is pagewise_bg.wasm served, and does the page's policy allow 'wasm-unsafe-eval'?";
    throw new PagewiseError('worker_crashed', `the WebAssembly module could not be started (${text}): ${hint}`, {
      cause,
    });
  }
  module.setPanicHandler((message: string) => loop.crash(message));
  return module as unknown as WasmModule;
}
