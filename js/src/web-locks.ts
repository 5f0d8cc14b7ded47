/**
 * Web Locks as objects: held until they are released, known to be lost when somebody takes them away. The browser frees the
 * locks of whoever is closed or crashes, which is how tabs know of each other's end.
 */

/** The part of a lock manager that is used. */
export type Locks = Pick<LockManager, 'request'>;

/** A lock that is held. */
export interface HeldLock {
  /** Lets the next one have it. */
  release(): void;
  /** Resolves when it is not held any more, whether it was released or taken away. */
  readonly isOver: Promise<void>;
}

/** Waits for a lock. An abort of the signal ends the waiting, and never a lock that is held already. */
export function acquire(locks: Locks, name: string, options: LockOptions = {}): Promise<HeldLock> {
  return new Promise((resolve, reject) => {
    const over: Promise<unknown> = locks.request(name, options, () => {
      return new Promise<void>((release) => {
        const isOver = over.then(
          () => undefined,
          () => undefined,
        );
        resolve({ release, isOver });
      });
    });
    over.catch(reject);
  });
}
