/**
 * A shared worker's work: the engine of all tabs, where it has WebGPU; else a broker between them. It says which to every tab
 * that connects.
 */

import { PagewiseError } from './errors.js';
import { Broker } from './rendezvous.js';
import { type HostRole, hostLock, type RoleMessage } from './shared-port.js';
import { acquire } from './web-locks.js';
import type { WorkerEnvironment } from './worker-environment.js';
import { connectPort, WorkerLoop } from './worker-loop.js';

/** See the file's comment. */
export class SharedHost {
  readonly #loop: WorkerLoop;
  readonly #broker = new Broker();
  readonly #role: Promise<HostRole>;

  /** `end` ends the worker, after the engine has crashed: tabs then get a new one. */
  constructor(environment: WorkerEnvironment, group: string, end: () => void) {
    this.#loop = new WorkerLoop(environment, end);
    this.#role = this.#decide(environment, group);
  }

  /** See {@link WorkerLoop.crash}. */
  crash(error: unknown): void {
    this.#loop.crash(error);
  }

  /** Takes a tab: its first message says what it wants. */
  connect(port: MessagePort): void {
    port.onmessage = ({ data }: MessageEvent<{ type?: unknown } | null>) => {
      if (data?.type === 'lead' || data?.type === 'join') this.#broker.connect(port, data);
      else connectPort(this.#loop, port)(data);
    };
    void this.#role.then((role) => port.postMessage({ type: 'role', role } satisfies RoleMessage));
  }

  async #decide(environment: WorkerEnvironment, group: string): Promise<HostRole> {
    const { locks } = environment;
    try {
      await environment.probeAdapter();
    } catch (error) {
      if (error instanceof PagewiseError) return 'broker';
      throw error;
    }
    if (locks === undefined) return 'broker';
    // One that has crashed may still be on its way out.
    await acquire(locks, hostLock(group));
    void this.#loop.run();
    return 'engine';
  }
}
