/**
 * Sharing without a shared worker that could have the engine: one tab has it. All queue for one Web Lock; whoever has it leads,
 * loads the model in a worker of its own, and the others talk to that worker directly. When the tab is closed or crashes, the
 * browser gives the lock to the next one; from a tab that is frozen it is taken.
 */

import { type OpenChannel, workerChannel } from './channel.js';
import type { PagewiseError } from './errors.js';
import type { Rendezvous, RendezvousEvents } from './rendezvous.js';
import { leaderLost, type Seat, type SeatContext } from './seat.js';
import { acquire, type HeldLock } from './web-locks.js';

/** Looks in silence after which a leader is taken to be frozen: while it serves, and while it loads. */
const SILENT_TICKS = 4;
const SILENT_TICKS_LOADING = 50;

type State = 'off' | 'waiting' | 'following' | 'leading';

/** See the file's comment. */
export class TabSeat implements Seat {
  readonly owner = 'tab';
  readonly #context: SeatContext;
  readonly #createWorker: () => Worker;
  readonly #rendezvous: Rendezvous;
  #state: State = 'off';
  /** Grows with every change: what was begun before it has no say any more. */
  #epoch = 0;
  #queue = new AbortController();
  #held: HeldLock | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isLoaded = false;

  /** Takes no part yet. */
  constructor(context: SeatContext, createWorker: () => Worker, meet: (events: RendezvousEvents) => Rendezvous) {
    this.#context = context;
    this.#createWorker = createWorker;
    this.#rendezvous = meet({
      onLeader: () => this.#follow(),
      onJoin: (via) => {
        if (this.#state === 'leading') context.client.connect(via);
      },
    });
  }

  get #leaderLock(): string {
    return `${this.#context.group}-leader`;
  }

  start(): void {
    this.#state = 'waiting';
    this.#context.client.onBroken = (error, hasCrashed) => this.#broken(error, hasCrashed);
    this.#wait();
    this.#follow();
    this.#look(0, 0);
  }

  stop(): void {
    this.#change('off');
    this.#queue.abort();
    clearTimeout(this.#timer);
    this.#rendezvous.close();
    this.#context.client.detach(leaderLost('this tab has left'));
    this.#release();
  }

  #change(state: State): number {
    this.#state = state;
    this.#isLoaded = false;
    return ++this.#epoch;
  }

  #release(): void {
    const held = this.#held;
    this.#held = undefined;
    held?.release();
  }

  /** Queues for the lock. */
  #wait(): void {
    const { locks } = this.#context.environment;
    this.#queue = new AbortController();
    const { signal } = this.#queue;
    acquire(locks, this.#leaderLock, { signal }).then(
      (held) => (signal.aborted ? held.release() : this.#lead(held)),
      () => undefined,
    );
  }

  #lead(held: HeldLock): void {
    if (this.#state === 'off') {
      held.release();
      return;
    }
    this.#held = held;
    void held.isOver.then(() => {
      if (this.#held === held) this.#stepDown();
    });
    this.#attach('leading', workerChannel(this.#createWorker));
    // After the load: what others want of the worker waits behind it.
    this.#rendezvous.lead();
  }

  /** Somebody took the lock while this tab was frozen. */
  #stepDown(): void {
    this.#held = undefined;
    this.#change('waiting');
    this.#context.client.detach(leaderLost('another tab took over while this one was frozen'));
    this.#context.onLost('follower');
    this.#wait();
    this.#follow();
  }

  /** Asks whoever leads to be served. */
  #follow(): void {
    if (this.#state !== 'off' && this.#state !== 'leading') this.#attach('following', this.#rendezvous.join());
  }

  #attach(state: 'leading' | 'following', open: OpenChannel): void {
    const { client, load, onReady, onLost } = this.#context;
    const epoch = this.#change(state);
    const role = state === 'leading' ? 'leader' : 'follower';
    const isCurrent = (): boolean => epoch === this.#epoch;
    client.detach(leaderLost('its tab was closed, crashed or was frozen'));
    onLost(role);
    try {
      client.attach(open, () => {
        client.call('load', load).then(
          (info) => {
            if (!isCurrent()) return;
            this.#isLoaded = true;
            onReady(info, role);
          },
          (error: PagewiseError) => {
            if (isCurrent() && error.code !== 'leader_lost') this.#fail(error);
          },
        );
      });
    } catch (error) {
      this.#fail(error as PagewiseError);
    }
  }

  #broken(error: PagewiseError, hasCrashed: boolean): void {
    if (this.#state === 'leading' || error.code === 'version_mismatch') {
      this.#fail(error);
      return;
    }
    this.#change('waiting');
    this.#context.client.detach(leaderLost(error.message));
    this.#context.onLost('follower');
    // One that has crashed is about to be followed by another one.
    if (!hasCrashed) this.#follow();
  }

  #fail(error: PagewiseError): void {
    // First, so that whatever waits fails with what really happened.
    this.#context.onFailed(error);
    this.stop();
  }

  /** Looks again and again whether a leader that something is wanted of says anything. */
  #look(numSilent: number, numReceived: number): void {
    const { client, environment } = this.#context;
    const epoch = this.#epoch;
    this.#timer = setTimeout(() => {
      const isQuiet = client.numReceived === numReceived && epoch === this.#epoch;
      const isWatched = this.#state === 'following' && client.isWaiting && client.closed === undefined;
      const silent = isQuiet && isWatched ? numSilent + 1 : 0;
      if (silent >= (this.#isLoaded ? SILENT_TICKS : SILENT_TICKS_LOADING)) {
        void this.#takeOver(epoch, numReceived);
        this.#look(0, client.numReceived);
        return;
      }
      if (isWatched) client.ping();
      this.#look(silent, client.numReceived);
    }, environment.tickMs);
  }

  /** Takes the lock away from a leader that is frozen. One tab at a time, and only if no other has just done it. */
  async #takeOver(epoch: number, numReceived: number): Promise<void> {
    const { client, environment, group } = this.#context;
    const { locks } = environment;
    const turn = await acquire(locks, `${group}-takeover`);
    try {
      await new Promise((resolve) => setTimeout(resolve, environment.tickMs));
      if (epoch !== this.#epoch || client.numReceived !== numReceived || !client.isWaiting) return;
      this.#queue.abort();
      this.#lead(await acquire(locks, this.#leaderLock, { steal: true }));
    } finally {
      turn.release();
    }
  }
}
