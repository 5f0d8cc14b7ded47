/**
 * What a request says about the prefix cache, checked.
 */

import { bad, type Fields, fieldsOf, flag, inRange, integer, isPlainObject, show } from './fields.js';
import type { EngineBreakpoint, EngineCacheOptions } from './protocol.js';

const CACHE_FIELDS: readonly string[] = ['enabled', 'priority', 'ttl_seconds', 'pin', 'salt', 'name'];
const CONTROL_FIELDS: readonly string[] = ['type', 'ttl'];
const MAX_PRIORITY = 2 ** 31 - 1;
/** A year; whoever wants more wants no limit. */
const MAX_TTL_SECONDS = 365 * 24 * 3600;
/** Of a salt or a name, in bytes of UTF-8; the engine's limit. */
const MAX_NAME_BYTES = 256;
/** The engine's limit. */
const MAX_BREAKPOINTS = 64;
const TTL_MS: Readonly<Record<string, number>> = { '5m': 300_000, '1h': 3_600_000 };

/** Checks the `cache` object and `prompt_cache_key` of a request. */
export function checkCache(request: Fields, breakpoints: EngineBreakpoint[]): EngineCacheOptions {
  const given = request.cache ?? {};
  if (!isPlainObject(given)) throw bad(`cache: a plain object is needed, ${show(given)} given`);
  const fields = fieldsOf(given, CACHE_FIELDS, 'cache');
  const named: Fields = {};
  for (const [key, value] of Object.entries(fields)) named[`cache.${key}`] = value;
  if (breakpoints.length > MAX_BREAKPOINTS) {
    throw bad(`cache_control: ${breakpoints.length} breakpoints given, ${MAX_BREAKPOINTS} allowed`);
  }
  const options: EngineCacheOptions = {
    enabled: flag({ 'cache.enabled': true, ...withoutNull(named) }, 'cache.enabled'),
    priority: integer(named, 'cache.priority', -MAX_PRIORITY, MAX_PRIORITY) ?? 0,
    pin: flag(named, 'cache.pin'),
    salt: checkSalt(named['cache.salt'], 'cache.salt'),
    breakpoints,
  };
  const ttl = named['cache.ttl_seconds'];
  if (ttl !== undefined && ttl !== null) {
    options.ttlMs = Math.ceil(1000 * inRange('cache.ttl_seconds', ttl, 0, MAX_TTL_SECONDS, true));
  }
  const group = checkName(request.prompt_cache_key, 'prompt_cache_key');
  if (group !== undefined) options.group = group;
  // Without a name of its own, the prefix is listed under the key.
  const name = checkName(named['cache.name'], 'cache.name') ?? group;
  if (name !== undefined) options.name = name;
  return options;
}

/** Checks a `cache_control`; returns the milliseconds for which what ends there is kept, undefined without one. */
export function checkCacheControl(value: unknown, where: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const place = `${where}.cache_control`;
  const { type, ttl = '5m' } = fieldsOf(value, CONTROL_FIELDS, place);
  if (type !== 'ephemeral') throw bad(`${place}.type: "ephemeral" is needed, ${show(type)} given`);
  const ms = typeof ttl === 'string' && Object.hasOwn(TTL_MS, ttl) ? TTL_MS[ttl] : undefined;
  if (ms === undefined) throw bad(`${place}.ttl: "5m" or "1h" is needed, ${show(ttl)} given`);
  return ms;
}

/** Checks a salt; none is the empty one. */
export function checkSalt(value: unknown, where: string): string {
  return checkName(value, where) ?? '';
}

function checkName(value: unknown, where: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw bad(`${where}: a string is needed, ${show(value)} given`);
  // As UTF-8, halves of characters would all be the same replacement character, and different salts one.
  if (/\p{Surrogate}/u.test(value)) throw bad(`${where}: text without lone surrogates is needed, ${show(value)} given`);
  const numBytes = new TextEncoder().encode(value).length;
  if (numBytes > MAX_NAME_BYTES) throw bad(`${where}: ${numBytes} bytes given, ${MAX_NAME_BYTES} allowed`);
  return value;
}

function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}
