/** Web Locks of several tabs in one process: what a tab holds is free when the tab is killed. */

interface Entry {
  tab: object;
  name: string;
  mode: LockMode;
  /** Runs the callback. */
  grant: () => void;
  /** Rejects the request. */
  refuse: (error: unknown) => void;
}

/** The browser's. */
export class FakeLocks {
  #held: Entry[] = [];
  #queue: Entry[] = [];

  /** Names of locks that are held or waited for. */
  get names(): string[] {
    return [...this.#held, ...this.#queue].map(({ name }) => name);
  }

  /** Names of locks that are held. */
  get held(): string[] {
    return this.#held.map(({ name }) => name);
  }

  /** A tab's lock manager. */
  of(tab: object): Pick<LockManager, 'request'> {
    const request = (name: string, ...rest: unknown[]): Promise<unknown> => {
      const callback = rest.pop() as (lock: object) => unknown;
      return this.#request(tab, name, (rest[0] ?? {}) as LockOptions, callback);
    };
    return { request: request as never };
  }

  /** The tab is closed or has crashed. */
  kill(tab: object): void {
    this.#held = this.#held.filter((entry) => entry.tab !== tab);
    this.#queue = this.#queue.filter((entry) => entry.tab !== tab);
    this.#next();
  }

  #request(tab: object, name: string, options: LockOptions, callback: (lock: object) => unknown): Promise<unknown> {
    const { mode = 'exclusive', steal = false, signal } = options;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        if (!this.#queue.includes(entry)) return;
        this.#queue = this.#queue.filter((other) => other !== entry);
        reject(new DOMException('aborted', 'AbortError'));
        this.#next();
      };
      const release = (): void => {
        this.#held = this.#held.filter((other) => other !== entry);
        this.#next();
      };
      const entry: Entry = {
        tab,
        name,
        mode,
        grant: () => void Promise.resolve({ name, mode }).then(callback).finally(release).then(resolve, reject),
        refuse: reject,
      };
      if (signal?.aborted) {
        reject(new DOMException('aborted', 'AbortError'));
        return;
      }
      signal?.addEventListener('abort', abort);
      if (steal) this.#steal(name);
      this.#queue[steal ? 'unshift' : 'push'](entry);
      this.#next();
    });
  }

  #steal(name: string): void {
    const stolen = this.#held.filter((entry) => entry.name === name);
    this.#held = this.#held.filter((entry) => entry.name !== name);
    for (const entry of stolen) entry.refuse(new DOMException('stolen', 'AbortError'));
  }

  #next(): void {
    const blocked = new Set<string>();
    for (const entry of [...this.#queue]) {
      const others = this.#held.filter(({ name }) => name === entry.name);
      const isFree = others.every(({ mode }) => mode === 'shared' && entry.mode === 'shared');
      if (blocked.has(entry.name) || !isFree) {
        blocked.add(entry.name);
        continue;
      }
      this.#queue = this.#queue.filter((other) => other !== entry);
      this.#held.push(entry);
      entry.grant();
    }
  }
}
