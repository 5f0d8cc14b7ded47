/**
 * The worker's script: one page's own worker, which may serve others through it.
 */

import type { FromWorker } from './protocol.js';
import { browserEnvironment } from './worker-environment.js';
import { WorkerLoop } from './worker-loop.js';

/** What is used of a worker's global scope; the DOM's types know only the page's. */
interface WorkerScope {
  postMessage(message: FromWorker, transfer: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<unknown>) => void): void;
  addEventListener(type: 'error', listener: (event: ErrorEvent) => void): void;
  addEventListener(type: 'unhandledrejection', listener: (event: PromiseRejectionEvent) => void): void;
}

const scope = globalThis as unknown as WorkerScope;

const loop = new WorkerLoop(browserEnvironment((message) => loop.crash(message)));
const receive = loop.connect((message, transfer) => scope.postMessage(message, transfer), { isOwner: true });

scope.addEventListener('message', ({ data }) => receive(data));
// A panic in a Rust future leaves its promise pending for ever and surfaces only here.
scope.addEventListener('error', (event) => loop.crash(event.message));
scope.addEventListener('unhandledrejection', (event) => loop.crash(event.reason));
void loop.run();
