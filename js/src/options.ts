/**
 * Options of calls are checked as requests are: what is unknown or of the wrong kind is an error that names it.
 */

import { bad, isPlainObject, show } from './fields.js';

const KINDS = {
  /** Checked where it is used. */
  any: ['', () => true],
  flag: ['true or false', (value: unknown) => typeof value === 'boolean'],
  function: ['a function', (value: unknown) => typeof value === 'function'],
  list: ['a list', (value: unknown) => Array.isArray(value)],
  signal: ['an AbortSignal', isSignal],
} as const satisfies Record<string, readonly [string, (value: unknown) => boolean]>;

/** Every option that a call has, and of which kind it is. */
export type OptionKinds<T> = { readonly [Name in keyof Required<T>]: keyof typeof KINDS };

/** The options of call `what`, without those that are undefined; absent ones are none. */
export function checkOptions<T extends object>(what: string, options: T | undefined, kinds: OptionKinds<T>): T {
  if (options === undefined) return {} as T;
  if (!isPlainObject(options)) throw bad(`${what}: options: a plain object is needed, ${show(options)} given`);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(kinds, name)) {
      throw bad(`${what}: ${name} is not supported; supported are ${Object.keys(kinds).join(', ')}`);
    }
    const [needed, isKind] = KINDS[kinds[name as keyof T]];
    if (!isKind(value)) throw bad(`${what}: ${name}: ${needed} is needed, ${show(value)} given`);
  }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}

/** Also of another window, which `instanceof` would not know. */
function isSignal(value: unknown): boolean {
  const signal = value as Partial<AbortSignal> | null;
  return typeof signal?.aborted === 'boolean' && typeof signal.addEventListener === 'function';
}
