/** The cache lab's state: settings, the experiment that runs, and the cache as it is now. */
import { type Signal, signal } from '@preact/signals';
import type { CacheStats, Engine, EvictionPolicy } from 'pagewise';
import { Job } from '../shared/job';
import { piecesOf } from '../shared/prompt';
import { BLOCK_SIZE } from '../shared/token-runs';
import type { ExperimentId } from './experiments';
import { cellsOf, type PoolCell } from './pool';
import { type CacheSettings, type ExperimentRun, execute, poolBlocks, prepare, sizeLimit, sizeWithRoom } from './run';
import { type TrieStretch, trieOf } from './trie';

export type PolicyName = EvictionPolicy['kind'];

/** What can be set without loading the model again. */
export interface LabSettings extends CacheSettings {
  readonly policy: PolicyName;
  /** About so many tokens in a prompt. */
  readonly tokens: number;
}

/** The cache at a moment. */
export interface CacheState {
  readonly cells: readonly PoolCell[];
  readonly trie: readonly TrieStretch[];
  /** What the tokens of the trie read as. */
  readonly pieces: ReadonlyMap<number, string>;
  readonly stats: CacheStats;
}

/** What was taken out of the GPU's memory and can come back: the second tier. */
export interface SavedPrefix {
  readonly blob: Blob;
  readonly salt: string;
  /** Full blocks of 16 tokens. */
  readonly numBlocks: number;
  /** How long taking it out took. */
  readonly saveMs: number;
  /** How long bringing it back took; null until it was. */
  readonly restoreMs: number | null;
}

/** A pool that is soon full. */
const SMALL_POOL_BLOCKS = 32;
/** Pause between two looks at the cache while it changes. */
const LOOK_MS = 120;
/** Of a tail-aware policy: a target that a warm turn meets and a cold one of some length does not. */
const TAIL_AWARE = { kind: 'tail_aware', ttftTargetMs: 200, nextTurnTokens: 64 } as const;
const DEFAULT_PREFILL_TOKENS_PER_S = 2000;

export class CacheLab {
  readonly settings: Signal<LabSettings>;
  readonly run: Signal<ExperimentRun | null> = signal(null);
  readonly state: Signal<CacheState | null> = signal(null);
  readonly saved: Signal<SavedPrefix | null> = signal(null);
  readonly job = new Job();
  private looking: Promise<void> | null = null;
  private isStale = false;
  private readonly endListening: () => void;

  /** `kept` has what was set before the model was loaded again; so do prompts keep their size in a smaller pool. */
  constructor(
    readonly engine: Engine,
    private readonly kept: Partial<LabSettings> = {},
  ) {
    const { adapter, contextLength } = engine.info;
    // A GPU that is a processor takes seconds for what others do at once.
    const tokens = Math.min(adapter.isSoftware ? 160 : 768, sizeWithRoom('same', contextLength));
    const settings = { enabled: true, ttlSeconds: null, pin: false, policy: 'lru' as const, tokens, ...kept };
    this.settings = signal(settings);
    Object.assign(kept, settings);
    if (kept.policy) void engine.cache.setPolicy(this.policy(kept.policy)).catch(() => undefined);
    const ends = [engine.cache.onEvent(() => this.look()), engine.onStep(() => this.look())];
    this.endListening = () => {
      for (const end of ends) end();
    };
    this.look();
  }

  /** Ends what runs, looks no more, and leaves the cache to the chat as it was. */
  close(): void {
    this.job.stop();
    this.endListening();
    // A model that is gone has nothing to be put right.
    const done = this.forget(this.run.peek()).then(() => this.engine.cache.setPolicy({ kind: 'lru' }));
    void done.catch(() => undefined);
  }

  /** Drops what an experiment left, pinned or not: nothing else is under its salt. */
  private async forget(run: ExperimentRun | null): Promise<void> {
    const firsts = new Set(run?.requests.map(({ ids }) => ids[0]));
    for (const id of firsts) if (run && id !== undefined) await this.engine.cache.evict([id], { salt: run.salt });
  }

  /** Changes settings. */
  async set(change: Partial<LabSettings>): Promise<void> {
    this.settings.value = { ...this.settings.peek(), ...change };
    Object.assign(this.kept, change);
    if (change.policy) await this.engine.cache.setPolicy(this.policy(change.policy));
  }

  private policy(kind: PolicyName): EvictionPolicy {
    if (kind === 'lru') return { kind };
    const speeds = this.run.peek()?.requests.map(({ measured }) => {
      return measured && measured.ttftMs > 0
        ? ((measured.promptTokens - measured.cachedTokens) * 1000) / measured.ttftMs
        : 0;
    });
    const prefillTokensPerS = Math.round(Math.max(0, ...(speeds ?? []))) || DEFAULT_PREFILL_TOKENS_PER_S;
    return { ...TAIL_AWARE, prefillTokensPerS };
  }

  /** The most tokens that prompts may have here. */
  limit(): number {
    return sizeLimit(this.engine.info.contextLength);
  }

  /**
   * The pool, in blocks, that an experiment should have here; null for the one there is. Filling a large pool takes an adapter
   * that is a processor many minutes, and shows no more.
   */
  poolFor(id: ExperimentId): number | null {
    const { adapter } = this.engine.info;
    const isSlow = id === 'crowded' && adapter.isSoftware && poolBlocks(this.engine.info) > SMALL_POOL_BLOCKS;
    return isSlow ? SMALL_POOL_BLOCKS : null;
  }

  /** Shows what to expect of an experiment, then runs it. */
  start(id: ExperimentId): Promise<void> {
    return this.job.run(async (abort) => {
      const settings = this.settings.peek();
      // These two have the size of the pool; the others are as large as the visitor wants.
      const isWhole = id === 'crowded' || (id === 'service' && !this.engine.info.adapter.isSoftware);
      const whole = sizeWithRoom(id, this.engine.info.contextLength);
      const tokens = isWhole ? whole : Math.min(settings.tokens, this.limit());
      await this.forget(this.run.peek());
      const prepared = await prepare(this.engine, id, tokens);
      if (abort.aborted) return;
      this.run.value = prepared;
      const onChange = (run: ExperimentRun): void => {
        if (abort.aborted) return;
        this.run.value = run;
      };
      await execute(this.engine, prepared, settings, onChange, abort);
      this.look();
    });
  }

  /** Empties the cache. */
  async clear(): Promise<void> {
    await this.engine.cache.clear();
    this.look();
  }

  /** Takes the first prompt's keys and values out of the GPU's memory, in full blocks; they stay cached as well. */
  save(): Promise<void> {
    return this.job.run(async () => {
      const run = this.run.peek();
      const first = run?.requests[0];
      if (!run || !first) return;
      const startMs = performance.now();
      const blob = await this.engine.cache.save(first.ids, { salt: run.salt });
      const saveMs = performance.now() - startMs;
      const numBlocks = Math.floor(first.ids.length / BLOCK_SIZE);
      this.saved.value = { blob, salt: run.salt, numBlocks, saveMs, restoreMs: null };
    });
  }

  /** Brings it back: nothing is computed. */
  restore(): Promise<void> {
    return this.job.run(async () => {
      const saved = this.saved.peek();
      if (!saved) return;
      const startMs = performance.now();
      await this.engine.cache.restore(saved.blob, { salt: saved.salt });
      this.saved.value = { ...saved, restoreMs: performance.now() - startMs };
      this.look();
    });
  }

  /** Looks at the cache soon: at once, or after the look that is under way. */
  look(): void {
    this.isStale = true;
    this.looking ??= this.lookUntilFresh().finally(() => {
      this.looking = null;
    });
  }

  private async lookUntilFresh(): Promise<void> {
    while (this.isStale) {
      this.isStale = false;
      try {
        this.state.value = await this.read();
      } catch {
        // The engine is gone: there is nothing to look at.
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  private async read(): Promise<CacheState> {
    const { cache } = this.engine;
    const [blocks, prefixes, stats] = await Promise.all([cache.blocks(), cache.prefixes(), cache.stats()]);
    const run = this.run.peek();
    const salt = run?.salt ?? '';
    const trie = trieOf(prefixes, salt);
    const ids = [...new Set(trie.flatMap(shownIds))];
    const texts = await piecesOf(this.engine, ids);
    return {
      cells: cellsOf(blocks, prefixes, run?.requests.map((request) => request.ids) ?? [], salt),
      trie,
      pieces: new Map(ids.map((id, index) => [id, texts[index] ?? ''])),
      stats,
    };
  }
}

/** Tokens of a stretch that are read out, at either end. */
export const SHOWN_TOKENS = 9;

function shownIds({ tokens, children }: TrieStretch): number[] {
  return [...tokens.slice(0, SHOWN_TOKENS), ...tokens.slice(-SHOWN_TOKENS), ...children.flatMap(shownIds)];
}
