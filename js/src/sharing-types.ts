/**
 * The public types of sharing an engine between tabs.
 */

/** Options of {@link LoadOptions.share}. */
export interface ShareOptions {
  /** Tabs share an engine under the same name, with the same model and the same options. Default `'default'`. */
  name?: string;
  /**
   * Who has the engine. `'auto'` (the default): a shared worker where it has WebGPU, else one of the tabs. `'tab'`: one of the
   * tabs in any case.
   */
  owner?: 'auto' | 'tab';
  /**
   * Makes the shared worker of that name, for bundlers that do not understand `new SharedWorker(new URL(…))`. Default: the
   * package's own, and with `createWorker` none: then one of the tabs has the engine.
   */
  createSharedWorker?: (name: string) => SharedWorker;
}

/** How a tab shares an engine. */
export interface EngineSharing {
  /** `leader`: this tab has the engine, or is loading it, and the others come to it. `follower`: another tab or a shared worker has it. */
  role: 'leader' | 'follower';
  /** Where the engine is. */
  owner: 'tab' | 'shared-worker';
  /** Whether there is an engine now. While there is none, requests wait for the next one. */
  isReady: boolean;
  /** Tabs that use it, this one included. */
  tabs: number;
}
