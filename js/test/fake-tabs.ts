/** Several tabs in one process: their locks, ports and workers, and what is left of them when they are closed or frozen. */

import { vi } from 'vitest';
import { Engine } from '../src/engine.js';
import { type LoadOptions, type ModelSource, PagewiseError } from '../src/index.js';
import { useShareEnvironment } from '../src/share-environment.js';
import { SharedHost } from '../src/shared-host.js';
import { behindRelay, type FakeOptions, FakeWorker, fakeEnvironment, fakeModel } from './fake.js';
import { FakeBus } from './fake-bus.js';
import { FakeEngine } from './fake-engine.js';
import { FakeLocks } from './fake-locks.js';

/** What the browser has. */
export interface FakeBrowserOptions extends FakeOptions {
  /** What shared workers can do; `none`: there are none. Default `none`. */
  sharedWorkers?: 'engine' | 'broker' | 'none';
}

/** The browser. */
export class FakeBrowser {
  readonly locks = new FakeLocks();
  readonly bus = new FakeBus();
  readonly options: FakeBrowserOptions;
  readonly tabs: FakeTab[] = [];
  /** Every shared worker that was started. */
  readonly hosts: { engine: FakeEngine; isOver: boolean; host: SharedHost }[] = [];
  readonly #byName = new Map<string, (typeof this.hosts)[number]>();

  constructor(options: FakeBrowserOptions = {}) {
    this.options = options;
  }

  /** Models that were loaded, by tabs and shared workers. */
  get numLoads(): number {
    const workers = this.tabs.flatMap((tab) => tab.workers.map((worker) => worker.engine));
    return [...workers, ...this.hosts.map(({ engine }) => engine)].reduce((sum, { numLoads }) => sum + numLoads, 0);
  }

  /** Opens a tab. */
  open(options: FakeOptions = {}): FakeTab {
    const tab = new FakeTab(this, { ...this.options, ...options });
    this.tabs.push(tab);
    return tab;
  }

  /** What a tab gets. */
  connect(name: string): SharedWorker {
    const there = this.#byName.get(name) ?? this.#start(name);
    const { port1, port2 } = new MessageChannel();
    there.host.connect(behindRelay(port2, () => !there.isOver));
    return { port: port1, onerror: null } as unknown as SharedWorker;
  }

  /** The browser ends a shared worker, which says nothing. */
  killHost(index: number): void {
    const there = this.hosts[index];
    if (there === undefined || there.isOver) return;
    there.isOver = true;
    for (const [name, other] of this.#byName) if (other === there) this.#byName.delete(name);
    this.locks.kill(there);
  }

  #start(name: string): (typeof this.hosts)[number] {
    const engine = new FakeEngine(this.options);
    const there = { engine, isOver: false } as (typeof this.hosts)[number];
    const noGpu = { probeAdapter: () => Promise.reject(new PagewiseError('no_webgpu', 'none')) };
    const environment = {
      ...fakeEnvironment({ ...this.options, locks: this.locks.of(there) }, engine),
      ...(this.options.sharedWorkers === 'broker' ? noGpu : {}),
    };
    const index = this.hosts.push(there) - 1;
    there.host = new SharedHost(environment, name, () => this.killHost(index));
    this.#byName.set(name, there);
    return there;
  }
}

/** A tab. */
export class FakeTab {
  readonly #browser: FakeBrowser;
  readonly #options: FakeOptions;
  readonly workers: FakeWorker[] = [];
  /** The window: `pagehide` and so on are sent here. */
  readonly page = new EventTarget();
  #isDead = false;

  constructor(browser: FakeBrowser, options: FakeOptions) {
    this.#browser = browser;
    this.#options = options;
  }

  /** Loads the model, shared. */
  load(options: LoadOptions = {}, model: ModelSource = fakeModel()): Promise<Engine> {
    const { locks, options: has } = this.#browser;
    const createWorker = (): Worker => {
      const worker = new FakeWorker({ ...this.#options, locks: locks.of(this), bus: this.#browser.bus });
      this.workers.push(worker);
      return worker.asWorker;
    };
    const createSharedWorker = (name: string): SharedWorker => this.#browser.connect(name);
    useShareEnvironment(() => ({
      locks: locks.of(this),
      createSharedWorker: undefined,
      openBroadcast: (name) => this.#browser.bus.open(name, () => !this.#isDead),
      page: this.page,
      tickMs: 60,
    }));
    const { share = true, ...others } = options;
    const given = share === true ? {} : share || {};
    const withHost = (has.sharedWorkers ?? 'none') === 'none' ? given : { createSharedWorker, ...given };
    return Engine.load(model, { createWorker, share: share !== false && withHost, ...others });
  }

  /** Nothing of it runs any more, and nobody is told: as a crash of its process. */
  kill(): void {
    for (const worker of this.workers) worker.terminate();
    this.#isDead = true;
    this.#browser.locks.kill(this);
  }

  /** Its workers do nothing, its locks stay. */
  freeze(): void {
    for (const worker of this.workers) worker.isFrozen = true;
  }
}

/** Waits until it is so. */
export function until(check: () => unknown): Promise<void> {
  return vi.waitFor(
    () => {
      if (!check()) throw new Error('not yet');
    },
    { timeout: 5000, interval: 5 },
  );
}
