/**
 * `engine.cache`: seeing and steering the prefix cache.
 */

import { checkCache, checkSalt } from './cache-request.js';
import type {
  CacheBlock,
  CacheEvent,
  CacheExplanation,
  CacheLookupOptions,
  CachePrefix,
  CachePrefixInput,
  CacheStats,
  EvictionPolicy,
  RestoredPrefix,
  RestoreOptions,
} from './cache-types.js';
import type { WorkerClient } from './client.js';
import { collect } from './completions.js';
import { bad, type Fields, fieldsOf, integer, isObject, show, tokenId } from './fields.js';
import { buffersOf } from './guard.js';
import { checkOptions, type OptionKinds } from './options.js';
import type { EnginePrefix } from './protocol.js';
import { checkChatRequest, checkTextRequest } from './request.js';
import { checkRendered } from './tool-request.js';
import type {
  CacheReport,
  ChatCompletionCreateParams,
  ChatRequestMessage,
  ChatTool,
  CompletionCreateParams,
  EngineInfo,
  RequestCacheOptions,
  RequestOptions,
  Usage,
} from './types.js';

/** Options of {@link PrefixCache.warm}. */
export interface WarmOptions extends Pick<RequestOptions, 'signal'> {
  /** As in a request: priority, time to live, pin, salt, name. */
  cache?: RequestCacheOptions;
  /** As in a request: a prompt that tells the model of functions begins with other tokens. Default: none. */
  tools?: readonly ChatTool[] | null;
}

/** What {@link PrefixCache.warm} did. */
export interface WarmResult {
  /** Tokens; none are generated. */
  usage: Usage;
  /** What was there already and what was added. */
  cache: CacheReport;
}

const WARM_OPTIONS: OptionKinds<WarmOptions> = { signal: 'signal', cache: 'any', tools: 'any' };
const LOOKUP_OPTIONS: OptionKinds<CacheLookupOptions> = { salt: 'any', tools: 'any' };
const TAIL_AWARE_FIELDS = ['ttftTargetMs', 'prefillTokensPerS', 'nextTurnTokens'];
const RESTORE_OPTIONS: OptionKinds<RestoreOptions> = {
  salt: 'any',
  priority: 'any',
  ttl_seconds: 'any',
  pin: 'any',
  name: 'any',
  transfer: 'flag',
};

/** The prefix cache of an engine. It never changes an answer, only what has to be computed for it. */
export class PrefixCache {
  readonly #client: WorkerClient;
  readonly #info: EngineInfo;

  /** @internal */
  constructor(client: WorkerClient, info: EngineInfo) {
    this.#client = client;
    this.#info = info;
  }

  /** Counters and present state. */
  stats(): Promise<CacheStats> {
    return this.#client.call('cacheStats', {});
  }

  /** Every block of the KV cache, for drawing. */
  blocks(): Promise<CacheBlock[]> {
    return this.#client.call('cacheBlocks', {});
  }

  /** The prefixes that it has: those with a name, and those that nothing longer continues. */
  prefixes(): Promise<CachePrefix[]> {
    return this.#client.call('cachePrefixes', {});
  }

  /**
   * Says what the cache would do for a chat or completion request if it came now, and why; nothing is computed and nothing
   * changes. Rejects as `create` does. Requests that are being answered may leave more in the cache until then.
   */
  async explain(request: ChatCompletionCreateParams | CompletionCreateParams): Promise<CacheExplanation> {
    const isText = isObject(request) && 'prompt' in request && !('messages' in request);
    const check = isText ? checkTextRequest : checkChatRequest;
    const { engineRequest } = check(request, [this.#info.id, this.#info.name]);
    return this.#client.call('cacheExplain', { request: engineRequest });
  }

  /**
   * Computes the beginning of a conversation now and answers nothing: a request that begins with these messages then
   * starts warm, if it has the same `tools`. `cache_control` on them works as in a request.
   */
  async warm(messages: readonly ChatRequestMessage[], options?: WarmOptions): Promise<WarmResult> {
    const { cache: cacheOptions, signal, tools } = checkOptions('warm', options, WARM_OPTIONS);
    const { engineRequest } = checkChatRequest({ messages, tools, cache: cacheOptions }, []);
    if (!engineRequest.cache.enabled) throw bad('warm: cache.enabled: false would leave nothing in the cache');
    const request = { ...engineRequest, prefillOnly: true };
    const { usage, cache } = await collect(await this.#client.generate(request, signal));
    return { usage, cache };
  }

  /**
   * Pins what the cache has of a prefix: it is given up last, and only if nothing could run otherwise. Returns the
   * tokens pinned, a multiple of a block's 16.
   */
  async pin(prefix: CachePrefixInput, options?: CacheLookupOptions): Promise<number> {
    return this.#client.call('cachePin', checkPrefix('pin', prefix, options));
  }

  /** Unpins a prefix, but for what a longer pinned one needs; returns the tokens that are not pinned any more. */
  async unpin(prefix: CachePrefixInput, options?: CacheLookupOptions): Promise<number> {
    return this.#client.call('cacheUnpin', checkPrefix('unpin', prefix, options));
  }

  /** Drops everything that begins with a prefix and is not in use; returns the number of blocks. */
  async evict(prefix: CachePrefixInput, options?: CacheLookupOptions): Promise<number> {
    return this.#client.call('cacheEvict', checkPrefix('evict', prefix, options));
  }

  /**
   * What the cache has of a prefix, to be kept (in OPFS or IndexedDB) and given to {@link restore} later, also after a
   * reload: full blocks of 16 tokens with their keys and values, readable by the same model in the same `kv` format alone.
   * Nothing is computed; {@link warm} the prefix first. No other request is served meanwhile.
   *
   * Rejects with `bad_request` if nothing of it is cached.
   */
  async save(prefix: CachePrefixInput, options?: CacheLookupOptions): Promise<Blob> {
    return this.#client.call('cacheSave', checkPrefix('save', prefix, options));
  }

  /**
   * Brings back what {@link save} returned, without computing anything: requests that begin with it then start warm. The
   * salt is not part of what was saved; it comes back under the one given here. Where not all of it fits beside what is
   * pinned or in use, its beginning comes back as far as it does, perhaps none of it.
   *
   * Take it from where you would take the model's weights from: damage is noticed, forgery is not. Rejects with
   * `bad_request`, and changes nothing, for what is no saved prefix, is damaged, or is of another model or `kv` format.
   */
  async restore(data: Blob | ArrayBuffer | Uint8Array, options?: RestoreOptions): Promise<RestoredPrefix> {
    const { transfer = false, ...given } = checkOptions('restore', options, RESTORE_OPTIONS);
    const cache = checkCache({ cache: given }, []);
    return this.#client.call('cacheRestore', { data: checkData(data, transfer), cache });
  }

  /** Chooses how blocks are given up from now on when their place is needed; `lru` when a model is loaded. */
  async setPolicy(policy: EvictionPolicy): Promise<void> {
    await this.#client.call('cachePolicy', { policy: checkPolicy(policy) });
  }

  /**
   * Drops everything that is not in use, and what is remembered of conversations; returns the number of blocks.
   */
  clear(): Promise<number> {
    return this.#client.call('cacheClear', {});
  }

  /** Calls back with everything that happens from now on; returns a function that ends it. */
  onEvent(callback: (event: CacheEvent) => void): () => void {
    if (typeof callback !== 'function') throw bad(`onEvent: a function is needed, ${show(callback)} given`);
    return this.#client.listenToCache(callback);
  }
}

/** What is to be sent: a buffer that the caller gives away, else a blob, whose bytes nobody copies again. */
function checkData(data: unknown, isGiven: boolean): Blob | ArrayBuffer {
  if (data instanceof Blob) return data;
  // Also of another window, which `instanceof` would not know.
  const kind = Object.prototype.toString.call(data);
  if (kind !== '[object ArrayBuffer]' && kind !== '[object Uint8Array]') {
    throw bad(`restore: a Blob, an ArrayBuffer or a Uint8Array is needed, ${show(data)} given`);
  }
  const [buffer] = isGiven ? buffersOf(data) : [];
  return buffer ?? new Blob([data as ArrayBuffer]);
}

function checkPolicy(policy: unknown): EvictionPolicy {
  const { kind, ...rest } = fieldsOf(policy, ['kind', ...TAIL_AWARE_FIELDS], 'policy');
  if (kind === 'lru') {
    fieldsOf(rest, [], 'policy');
    return { kind };
  }
  if (kind !== 'tail_aware') throw bad(`policy.kind: "lru" or "tail_aware" is needed, ${show(kind)} given`);
  const given: Fields = {};
  for (const name of TAIL_AWARE_FIELDS) {
    given[name] = rest[name];
    if (integer(given, name, 0, 2 ** 32 - 1) === undefined) throw bad(`policy.${name}: an integer is needed`);
  }
  return { kind, ...given } as EvictionPolicy;
}

function checkPrefix(
  what: string,
  prefix: CachePrefixInput,
  options: CacheLookupOptions | undefined,
): { prefix: EnginePrefix; salt: string } {
  const { salt: given, tools } = checkOptions(what, options, LOOKUP_OPTIONS);
  if (!Array.isArray(prefix) || prefix.length === 0) {
    throw bad(`prefix: a list of messages or of token ids is needed, ${show(prefix)} given`);
  }
  const salt = checkSalt(given, 'salt');
  if (typeof prefix[0] !== 'number') return { prefix: checkRendered(prefix, tools), salt };
  if (tools !== undefined && tools !== null) throw bad('tools: only with messages; token ids have them in them');
  return { prefix: { ids: Array.from(prefix, (id) => tokenId('prefix', id)) }, salt };
}
