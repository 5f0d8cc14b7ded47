/**
 * What sharing needs from the browser.
 */

import { bad } from './fields.js';
import type { Locks } from './web-locks.js';

/** See the file's comment. */
export interface ShareEnvironment {
  /** Web Locks. */
  locks: Locks;
  /** Starts the package's shared worker; undefined where there are none. */
  createSharedWorker: ((name: string) => SharedWorker) | undefined;
  /** Opens a broadcast channel. */
  openBroadcast(name: string): BroadcastChannel;
  /** The page: told when it is put away and when it comes back; undefined in workers. */
  page: Pick<EventTarget, 'addEventListener' | 'removeEventListener'> | undefined;
  /** A follower that waits looks this often whether it hears from the leader. */
  tickMs: number;
}

/** With four of them in silence and one to make sure, a frozen tab is given up within 2 s. */
const TICK_MS = 380;

function browserShare(): ShareEnvironment {
  const locks = globalThis.navigator?.locks as LockManager | undefined;
  if (locks === undefined || typeof BroadcastChannel !== 'function') {
    throw bad('load: share needs Web Locks and broadcast channels: pages over https or from localhost have them');
  }
  const page = typeof document === 'undefined' ? undefined : globalThis;
  return {
    locks,
    createSharedWorker: typeof SharedWorker === 'function' ? defaultSharedWorker : undefined,
    openBroadcast: (name) => new BroadcastChannel(name),
    page,
    tickMs: TICK_MS,
  };
}

/** The package's own; the expression is the one that bundlers understand. */
function defaultSharedWorker(name: string): SharedWorker {
  return new SharedWorker(new URL('./shared-worker.js', import.meta.url), { type: 'module', name });
}

let current: () => ShareEnvironment = browserShare;

/** The browser's; throws `bad_request` where there is none. */
export function shareEnvironment(): ShareEnvironment {
  return current();
}

/**
 * Replaces it, for tests.
 *
 * @internal
 */
export function useShareEnvironment(get: () => ShareEnvironment): void {
  current = get;
}
