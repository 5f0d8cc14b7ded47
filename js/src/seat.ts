/**
 * A tab's place among those that share an engine, as both kinds of it have in common.
 */

import type { WorkerClient } from './client.js';
import { PagewiseError } from './errors.js';
import type { Calls } from './protocol.js';
import type { ShareEnvironment } from './share-environment.js';
import type { EngineInfo } from './types.js';

/** What a seat is given. */
export interface SeatContext {
  readonly environment: ShareEnvironment;
  /** What locks and channels are called. */
  readonly group: string;
  readonly client: WorkerClient;
  readonly load: Calls['load']['args'];
  /** The engine can be used: one that was loaded by this tab, or one that is there. */
  onReady(info: EngineInfo, role: 'leader' | 'follower'): void;
  /** There is none now; the next one is looked for, or loaded by this tab. */
  onLost(role: 'leader' | 'follower'): void;
  /** There will be none for this tab. */
  onFailed(error: PagewiseError): void;
}

/** See the file's comment. */
export interface Seat {
  readonly owner: 'tab' | 'shared-worker';
  /** Takes it. */
  start(): void;
  /** Leaves it at once: locks are free, nothing is waited for. The client is not attached to anything afterwards. */
  stop(): void;
}

/** Of answers that the end of the engine cut off. */
export function leaderLost(why: string): PagewiseError {
  return new PagewiseError('leader_lost', `the shared engine is gone (${why}); the request can be sent again at once`);
}
