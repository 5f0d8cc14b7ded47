/**
 * The shared worker's script: see {@link SharedHost}. Its name is that of the group of tabs.
 */

import { SharedHost } from './shared-host.js';
import { browserEnvironment } from './worker-environment.js';

/** What is used of a shared worker's global scope; the DOM's types know only the page's. */
interface SharedScope {
  readonly name: string;
  close(): void;
  addEventListener(type: 'connect', listener: (event: MessageEvent<unknown>) => void): void;
  addEventListener(type: 'error', listener: (event: ErrorEvent) => void): void;
  addEventListener(type: 'unhandledrejection', listener: (event: PromiseRejectionEvent) => void): void;
}

const scope = globalThis as unknown as SharedScope;

const environment = browserEnvironment((message) => host.crash(message));
const host: SharedHost = new SharedHost(environment, scope.name, () => scope.close());

scope.addEventListener('connect', ({ ports: [port] }) => {
  if (port !== undefined) host.connect(port);
});
// As in `worker.ts`.
scope.addEventListener('error', (event) => host.crash(event.message));
scope.addEventListener('unhandledrejection', (event) => host.crash(event.reason));
