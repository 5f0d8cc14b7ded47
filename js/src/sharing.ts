/**
 * An engine that several tabs have together: whichever way it is shared, each tab has a client that stays the same, and this is
 * what keeps it connected.
 */

import { WorkerClient } from './client.js';
import { cancelledError, type PagewiseError } from './errors.js';
import { HostSeat } from './host-seat.js';
import { Listeners } from './listeners.js';
import type { Calls } from './protocol.js';
import { broadcast, brokered } from './rendezvous.js';
import { leaderLost, type Seat, type SeatContext } from './seat.js';
import type { ShareEnvironment } from './share-environment.js';
import { groupOf } from './share-options.js';
import { openHost } from './shared-port.js';
import type { EngineSharing, ShareOptions } from './sharing-types.js';
import { TabSeat } from './tab-seat.js';
import type { EngineInfo, LoadOptions } from './types.js';
import { acquire, type HeldLock } from './web-locks.js';
import { defaultWorker, inWorker } from './with-worker.js';

/** How a tab takes part. */
export interface SharingSettings {
  environment: ShareEnvironment;
  group: string;
  load: Calls['load']['args'];
  /** Whether a shared worker may have the engine. */
  allowsHost: boolean;
  createSharedWorker: ((name: string) => SharedWorker) | undefined;
  createWorker: () => Worker;
  /** Stores the model, where this tab does not load it: a shared worker cannot write files, another tab was not asked to. */
  store: (() => Promise<void>) | undefined;
}

/** See the file's comment. */
export class Sharing {
  readonly #settings: SharingSettings;
  readonly #changes = new Listeners<EngineSharing>(() => undefined);
  readonly client = new WorkerClient();
  /** What was loaded; the object stays the same. */
  readonly loaded: Promise<EngineInfo>;
  #settle: { resolve: (info: EngineInfo) => void; reject: (error: PagewiseError) => void } | undefined;
  #info: EngineInfo | undefined;
  #state: EngineSharing = { role: 'follower', owner: 'tab', isReady: false, tabs: 1 };
  #life: HeldLock | undefined;
  #seat: Seat | undefined;
  /** Grows whenever the tab enters or leaves: what was begun before it has no say any more. */
  #entry = 0;
  #isIn = false;
  #storing: Promise<void> | undefined;
  /** Of who has the engine. */
  #numChanges = 0;

  /** Enters the group. */
  constructor(settings: SharingSettings) {
    this.#settings = settings;
    this.loaded = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.client.onClients = (tabs) => {
      this.#state = { ...this.#state, tabs };
    };
    const { page } = settings.environment;
    const away = (): void => this.#suspend();
    const back = (): void => this.#enter();
    const events = [
      ['pagehide', away],
      ['freeze', away],
      ['pageshow', back],
      ['resume', back],
    ] as const;
    for (const [type, listener] of events) page?.addEventListener(type, listener, true);
    this.client.atEnd(() => {
      for (const [type, listener] of events) page?.removeEventListener(type, listener, true);
    });
    this.#enter();
  }

  /** How it is now. */
  get state(): EngineSharing {
    return { ...this.#state };
  }

  /** Calls back whenever another one has the engine; returns a function that ends it. */
  onLeaderChange(callback: (sharing: EngineSharing) => void): () => void {
    return this.#changes.add(callback);
  }

  /** Leaves for good; everything that is pending, and every later call, fails with `error`. Resolves when it has left. */
  async leave(error: PagewiseError): Promise<void> {
    this.#entry += 1;
    this.#settle?.reject(error);
    // First: the next one may need the memory.
    await this.client.unload(error);
    this.#out();
  }

  #enter(): void {
    if (this.#isIn || this.client.closed !== undefined) return;
    this.#isIn = true;
    const entry = ++this.#entry;
    this.#sit(entry).catch((error: PagewiseError) => {
      if (entry === this.#entry) this.#fail(error);
    });
  }

  async #sit(entry: number): Promise<void> {
    const { environment, group, allowsHost, createSharedWorker, createWorker, load, store } = this.#settings;
    const isCurrent = (): boolean => entry === this.#entry;
    // A new one each time: whoever waits for the old one's end has seen it.
    const life = `${group}-tab-${crypto.randomUUID()}`;
    const held = await acquire(environment.locks, life);
    if (!isCurrent()) {
      held.release();
      return;
    }
    this.#life = held;
    this.client.life = life;
    const open = (): ReturnType<typeof openHost> => openHost(createSharedWorker, group);
    const host = await open();
    const hasEngine = host?.role === 'engine' && allowsHost;
    if (hasEngine && isCurrent()) await store?.();
    if (!isCurrent()) {
      host?.port.close();
      return;
    }
    const context: SeatContext = {
      environment,
      group,
      client: this.client,
      load: hasEngine ? { ...load, store: false } : load,
      onReady: (info, role) => {
        this.#numChanges += 1;
        const isElsewhere = role === 'follower' && !hasEngine && this.#info === undefined;
        if (!isElsewhere || store === undefined) this.#ready(info, role);
        else this.#readyOnceStored(info, role, store);
      },
      onLost: (role) => {
        this.#numChanges += 1;
        this.#state = { ...this.#state, role, isReady: false };
      },
      onFailed: (error) => this.#fail(error),
    };
    this.#seat = hasEngine
      ? new HostSeat(context, host.port, open)
      : new TabSeat(context, createWorker, (events) =>
          host === undefined ? broadcast(environment.openBroadcast, group, events) : brokered(host.port, events),
        );
    this.#state = { ...this.#state, owner: this.#seat.owner };
    this.#seat.start();
  }

  /** Whoever has loaded it may have been asked for no more than that. */
  #readyOnceStored(info: EngineInfo, role: EngineSharing['role'], store: () => Promise<void>): void {
    const change = this.#numChanges;
    const ifCurrent =
      <T>(use: (value: T) => void) =>
      (value: T): void => {
        if (change === this.#numChanges && this.client.closed === undefined) use(value);
      };
    this.#storing ??= store();
    this.#storing.then(
      ifCurrent(() => this.#ready(info, role)),
      ifCurrent((error: PagewiseError) => this.#fail(error)),
    );
  }

  #ready(info: EngineInfo, role: EngineSharing['role']): void {
    this.#state = { ...this.#state, role, isReady: true };
    if (this.#info === undefined) {
      this.#info = info;
      this.#settle?.resolve(info);
      return;
    }
    Object.assign(this.#info, info);
    this.#changes.tell([this.state]);
  }

  #fail(error: PagewiseError): void {
    this.#entry += 1;
    this.#settle?.reject(error);
    this.client.close(error);
    this.#out();
  }

  /** The page is put away, and perhaps comes back. Others must not wait for it. */
  #suspend(): void {
    if (!this.#isIn || this.client.closed !== undefined) return;
    this.#entry += 1;
    this.#numChanges += 1;
    this.client.detach(leaderLost('the page was put away'));
    this.#out();
  }

  #out(): void {
    const [seat, life] = [this.#seat, this.#life];
    this.#seat = undefined;
    this.#life = undefined;
    this.#isIn = false;
    this.#state = { ...this.#state, role: 'follower', isReady: false, tabs: 1 };
    seat?.stop();
    life?.release();
  }
}

/** Waits for the engine; an abort leaves the group. */
export async function loadSharing(sharing: Sharing, signal: AbortSignal | undefined): Promise<EngineInfo> {
  const onAbort = (): void => void sharing.leave(cancelledError(signal));
  signal?.addEventListener('abort', onAbort);
  if (signal?.aborted) onAbort();
  try {
    return await sharing.loaded;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Enters the group of tabs that load the same. */
export function startSharing(
  share: ShareOptions,
  environment: ShareEnvironment,
  options: LoadOptions,
  load: Calls['load']['args'],
): Sharing {
  const group = groupOf(share, load.source, load.options);
  const { createWorker, onProgress } = options;
  const own = createWorker === undefined ? environment.createSharedWorker : undefined;
  const ended = new AbortController();
  const signal = options.signal === undefined ? ended.signal : AbortSignal.any([options.signal, ended.signal]);
  const sharing = new Sharing({
    environment,
    group,
    load: { ...load, group },
    allowsHost: share.owner !== 'tab',
    createSharedWorker: share.createSharedWorker ?? own,
    createWorker: createWorker ?? defaultWorker,
    store: load.store ? () => storeModel({ ...options, signal }, load) : undefined,
  });
  sharing.client.atEnd(() => ended.abort());
  sharing.client.onProgress = onProgress;
  return sharing;
}

/** Downloads a model, if it can run here and is not stored yet, in a worker for it alone. */
function storeModel(options: LoadOptions, load: Calls['load']['args']): Promise<void> {
  const { source } = load;
  return inWorker(options, async (client) => {
    client.onProgress = options.onProgress;
    const isHere = source.parts.length > 0 && source.parts.every(({ kind }) => kind === 'blob');
    if (isHere || (await client.call('modelsFind', { source })) !== null) return;
    await client.call('plan', { source, options: load.options });
    await client.call('modelsDownload', { source });
  });
}
