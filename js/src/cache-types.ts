/**
 * What the prefix cache shows of itself.
 */

import type { MissExplanation } from './doctor.js';
import type { ChatRequestMessage } from './message-types.js';
import type { StepAnswer } from './metrics-types.js';
import type { CacheMiss } from './openai.js';
import type { ChatTool } from './tool-types.js';

/** A prefix: messages, or the token ids that prompts begin with. */
export type CachePrefixInput = readonly ChatRequestMessage[] | readonly number[];

/** Which prefix is meant. */
export interface CacheLookupOptions {
  /** As in a request: functions that the prompts tell the model of. Only with messages. Default: none. */
  tools?: readonly ChatTool[] | null;
  /** The salt that it was computed under. Default: none. */
  salt?: string;
}

/** How what was saved is kept once it is back; as in a request. */
export interface RestoreOptions extends Pick<CacheLookupOptions, 'salt'> {
  /** Blocks of lower priority are given up first. Default: 0. */
  priority?: number;
  /** Drop it when it was not used for so long. Default: keep it until its place is needed. */
  ttl_seconds?: number;
  /** Give it up last. Default: false. */
  pin?: boolean;
  /** What it is called in `prefixes()`. */
  name?: string;
  /** Whether a buffer is handed over instead of copied: it is empty afterwards. Default: false. */
  transfer?: boolean;
}

/** What came back. */
export interface RestoredPrefix {
  /** Tokens of it that are cached now, those that were before included; a multiple of a block's 16. */
  tokens: number;
  /** Blocks that were brought back. */
  blocks: number;
}

/** Counters of the prefix cache since the model was loaded, and its state now. */
export interface CacheStats {
  /** Blocks and tails of distinct prefixes. */
  numNodes: number;
  /** Blocks with cached contents, whether a request holds them or not. */
  numBlocks: number;
  /** Of these, pinned ones. */
  numPinned: number;
  /** Requests that looked for their prompt. */
  numLookups: number;
  /** Requests that found something. */
  numHits: number;
  /** Tokens that were looked for. */
  askedTokens: number;
  /** Tokens that were found. */
  readTokens: number;
  /** Tokens that entered the cache. */
  writtenTokens: number;
  /** Blocks that were computed although the cache had them. */
  numDuplicates: number;
  /** Blocks given up because their place was needed. */
  numEvicted: number;
  /** Blocks that outlived their time. */
  numExpired: number;
  /** Blocks dropped on request, or because a longer one took their place. */
  numDropped: number;
  /** Blocks that had been saved and came back. */
  numRestored: number;
  /** Requests by their `prompt_cache_key`: the key that was used last in front, at most 256 of them. */
  groups: CacheGroupStats[];
  /** Keys that were forgotten, those that were not used for longest first, because there were more. */
  numForgottenGroups: number;
}

/** Sums over the requests of one `prompt_cache_key`. A request counts when its prompt starts to be computed. */
export interface CacheGroupStats {
  /** The key. */
  key: string;
  /** Requests, those that did not want the cache included. */
  numRequests: number;
  /** Requests of which something was cached. */
  numHits: number;
  /** Tokens of their prompts. */
  promptTokens: number;
  /** Of these, tokens that were cached. */
  cachedTokens: number;
  /** `cachedTokens` of `promptTokens`, 0 to 1. */
  hitRate: number;
}

/** What the prefix cache would do for a request. */
export interface CacheExplanation {
  /** Tokens of its prompt. */
  prompt_tokens: number;
  /** Of these, tokens that would not have to be computed. */
  cached_tokens: number;
  /** Why it would not be more; null if nothing more can be expected. */
  miss: ExplainedCacheMiss | null;
  /**
   * What the prompt doctor finds, compared with that of the latest requests which begins with the most of the same tokens:
   * messages with messages, else texts with texts; texts too where the template changed. Null if none is remembered.
   */
  doctor: MissExplanation | null;
}

/** A miss with the texts around it: up to 16 tokens each. */
export interface ExplainedCacheMiss extends CacheMiss {
  /** What both have in front of it. */
  before: string;
  /** What the cache has there, as far as it is known; null if nothing. */
  expected_text: string | null;
  /** What the prompt has there; null at its end. */
  found_text: string | null;
}

/**
 * How blocks are chosen when their place is needed; pins and priorities come first. `lru` gives up what was not used for
 * longest. `tail_aware` gives up first what can go without a conversation's next turn of `nextTurnTokens` missing
 * `ttftTargetMs`, at `prefillTokensPerS`; all three are integers.
 */
export type EvictionPolicy =
  | { kind: 'lru' }
  | { kind: 'tail_aware'; ttftTargetMs: number; prefillTokensPerS: number; nextTurnTokens: number };

/** One block of the KV cache, for drawing. */
export interface CacheBlock {
  /** Layer group: 0 for layers that see the whole context, 1 for sliding-window layers (as far as there are both). */
  group: number;
  /** Its number in the group's pool. */
  block: number;
  /** Requests that hold it now. */
  numHolders: number;
  /** Their answers, as far as they have not ended. */
  holders: StepAnswer[];
  /** What the prefix cache has in it; null if nothing. */
  cached: CachedBlock | null;
}

/** Contents of a {@link CacheBlock}. */
export interface CachedBlock {
  /** Names the stretch of a prefix that it holds. */
  node: number;
  /** The stretch before it. */
  parent: number;
  /** Position of its first token. */
  position: number;
  /** Tokens in it. */
  numTokens: number;
  /** Lower ones are given up first. */
  priority: number;
  /** Given up last. */
  isPinned: boolean;
  /** Milliseconds since it was used last. */
  idleMs: number;
  /** Milliseconds until it is dropped, if it is not used before; null for never. */
  expiresInMs: number | null;
  /** Requests that found it. */
  numHits: number;
}

/** A prefix that the cache has: one that has a name, or that nothing longer continues. */
export interface CachePrefix {
  /** The stretch that it ends with: the `node` of a {@link CachedBlock}. */
  node: number;
  /** `cache.name` or `prompt_cache_key` of the request that computed it. */
  name: string | null;
  /** The salt that it is under. */
  salt: string;
  /** Its token ids. */
  tokens: number[];
  /** Blocks that hold it, those shared with other prefixes included. */
  numBlocks: number;
  /** Bytes of these blocks. */
  bytes: number;
  /** Milliseconds since its end was computed. */
  ageMs: number;
  /** Milliseconds since its end was used. */
  idleMs: number;
  /** Milliseconds until its end is dropped, if it is not used before; null for never. */
  expiresInMs: number | null;
  /** Requests that found all of it. */
  numHits: number;
  /** Lower ones are given up first. */
  priority: number;
  /** Given up last. */
  isPinned: boolean;
  /** Whether a request holds its end now. */
  isHeld: boolean;
}

/** Something that happened in the prefix cache. */
export type CacheEvent =
  | {
      /** Tokens entered the cache. */
      kind: 'stored';
      /** Position of the first one. */
      position: number;
      /** How many. */
      numTokens: number;
    }
  | {
      /** A request found its first tokens. */
      kind: 'hit';
      /** How many. */
      numTokens: number;
    }
  | {
      /** Blocks that had been saved came back. */
      kind: 'restored';
      /** Position of the first token. */
      position: number;
      /** Tokens that they hold. */
      numTokens: number;
      /** Layer group. */
      group: number;
    }
  | {
      /** A block was not used for its time to live, and dropped. */
      kind: 'expired';
      /** Position of its first token. */
      position: number;
      /** Tokens that it held. */
      numTokens: number;
      /** Layer group. */
      group: number;
    }
  | {
      /** A block was given up. */
      kind: 'evicted';
      /** Position of its first token. */
      position: number;
      /** Tokens that it held. */
      numTokens: number;
      /** Layer group. */
      group: number;
      /** Its place was needed; it was asked for; a longer one replaced it; its request failed. */
      reason: 'capacity' | 'asked' | 'superseded' | 'failed';
    };
