/** Broadcast channels in one process. Node's own do not take blobs. */

/** All channels of a browser. */
export class FakeBus {
  readonly #ends = new Map<string, Set<FakeEnd>>();

  /** Opens a channel, which works while `isRunning`. */
  open(name: string, isRunning: () => boolean = () => true): BroadcastChannel {
    const ends = this.#ends.get(name) ?? new Set();
    this.#ends.set(name, ends);
    const end = new FakeEnd(ends, isRunning);
    ends.add(end);
    return end as unknown as BroadcastChannel;
  }

  /** What was on the way could not be read. */
  garble(): void {
    for (const end of [...this.#ends.values()].flatMap((ends) => [...ends])) end.onmessageerror?.();
  }
}

class FakeEnd {
  onmessageerror: (() => void) | null = null;
  readonly #ends: Set<FakeEnd>;
  readonly #isRunning: () => boolean;
  onmessage: ((event: { data: unknown }) => void) | null = null;

  constructor(ends: Set<FakeEnd>, isRunning: () => boolean) {
    this.#ends = ends;
    this.#isRunning = isRunning;
  }

  postMessage(message: unknown): void {
    if (!this.#isRunning()) return;
    if (!this.#ends.has(this)) throw new DOMException('closed', 'InvalidStateError');
    for (const end of this.#ends) {
      if (end === this) continue;
      const data = structuredClone(message);
      setTimeout(() => this.#ends.has(end) && end.#isRunning() && end.onmessage?.({ data }));
    }
  }

  close(): void {
    this.#ends.delete(this);
  }
}
