/**
 * Callbacks for something that costs nothing while nobody listens.
 */

/** Any number of callbacks; `onSwitch` is told when the first one comes and when the last one has gone. */
export class Listeners<T> {
  readonly #callbacks = new Set<(value: T) => void>();
  readonly #onSwitch: (isOn: boolean) => void;

  /** Nobody listens yet. */
  constructor(onSwitch: (isOn: boolean) => void) {
    this.#onSwitch = onSwitch;
  }

  /** Whether anybody listens. */
  get isOn(): boolean {
    return this.#callbacks.size > 0;
  }

  /** Adds a callback; returns a function that takes it out again. */
  add(callback: (value: T) => void): () => void {
    // A function of its own: the same callback may listen twice.
    const listener = (value: T): void => callback(value);
    this.#callbacks.add(listener);
    if (this.#callbacks.size === 1) this.#onSwitch(true);
    return () => {
      if (this.#callbacks.delete(listener) && this.#callbacks.size === 0) this.#onSwitch(false);
    };
  }

  /** Calls all of them with each value in turn. One that throws takes nothing from the others. */
  tell(values: readonly T[]): void {
    for (const value of values) {
      for (const callback of [...this.#callbacks]) {
        // Another callback may just have taken it out.
        if (!this.#callbacks.has(callback)) continue;
        try {
          callback(value);
        } catch (error) {
          report(error);
        }
      }
    }
  }
}

/** Shows the page an error of its own as if nobody had caught it. */
function report(error: unknown): void {
  // In a microtask nobody catches it.
  queueMicrotask(() => {
    throw error;
  });
}
