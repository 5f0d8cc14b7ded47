/**
 * Sharing through a shared worker that has the engine: every tab follows. When the worker crashes, its lock is free; then the
 * tabs start another one.
 */

import { portChannel } from './channel.js';
import { PagewiseError } from './errors.js';
import { leaderLost, type Seat, type SeatContext } from './seat.js';
import { type HostPort, hostLock } from './shared-port.js';
import { acquire } from './web-locks.js';

/** See the file's comment. */
export class HostSeat implements Seat {
  readonly owner = 'shared-worker';
  readonly #context: SeatContext;
  readonly #reopen: () => Promise<HostPort | undefined>;
  #port: MessagePort;
  /** Grows with every change: what was begun before it has no say any more. */
  #epoch = 0;
  #watch = new AbortController();
  #isLoading = false;

  /** `port` is the worker's; `reopen` starts the worker anew. */
  constructor(context: SeatContext, port: MessagePort, reopen: () => Promise<HostPort | undefined>) {
    this.#context = context;
    this.#port = port;
    this.#reopen = reopen;
  }

  start(): void {
    const { client, load, environment, group, onReady } = this.#context;
    const epoch = ++this.#epoch;
    const isCurrent = (): boolean => epoch === this.#epoch;
    this.#isLoading = true;
    client.onBroken = (error, hasCrashed) => this.#broken(error, hasCrashed);
    client.attach(portChannel(this.#port), () => {
      client.call('load', load).then(
        (info) => {
          if (!isCurrent()) return;
          this.#isLoading = false;
          onReady(info, 'follower');
        },
        (error: PagewiseError) => {
          if (isCurrent() && error.code !== 'leader_lost') this.#fail(error);
        },
      );
    });
    this.#watch = new AbortController();
    const { signal } = this.#watch;
    acquire(environment.locks, hostLock(group), { mode: 'shared', signal }).then(
      (lock) => {
        lock.release();
        if (isCurrent()) void this.#again(epoch);
      },
      () => undefined,
    );
  }

  stop(): void {
    this.#epoch += 1;
    this.#watch.abort();
    this.#context.client.detach(leaderLost('this tab has left'));
  }

  #broken(error: PagewiseError, hasCrashed: boolean): void {
    // What crashes while it loads would do so again.
    if (this.#isLoading || error.code === 'version_mismatch') {
      this.#fail(error);
      return;
    }
    this.#context.client.detach(leaderLost(error.message));
    this.#context.onLost('follower');
    // After a crash the worker's end follows, and frees its lock.
    if (!hasCrashed) void this.#again(this.#epoch);
  }

  async #again(epoch: number): Promise<void> {
    if (this.#isLoading) {
      this.#fail(new PagewiseError('worker_crashed', 'the shared worker ended while the model was loaded'));
      return;
    }
    this.#watch.abort();
    this.#context.client.detach(leaderLost('its worker has ended'));
    this.#context.onLost('follower');
    const host = await this.#reopen();
    if (epoch !== this.#epoch) {
      host?.port.close();
    } else if (host?.role === 'engine') {
      this.#port = host.port;
      this.start();
    } else {
      host?.port.close();
      this.#fail(new PagewiseError('worker_crashed', 'the shared worker ended and could not be started again'));
    }
  }

  #fail(error: PagewiseError): void {
    this.#context.onFailed(error);
    this.stop();
  }
}
