/**
 * Checks of single fields: what does not fit is a `bad_request` that names the field and what was given.
 */

import { PagewiseError } from './errors.js';

/** Token ids end here. */
export const MAX_TOKEN_ID = 2 ** 32 - 1;

/** An object whose fields are not checked yet. */
export type Fields = Record<string, unknown>;

/** The fields of a request, after refusing those that are not supported. */
export function fieldsOf(params: unknown, supported: readonly string[], where = ''): Fields {
  if (!isObject(params)) {
    throw bad(`${where === '' ? 'a request object' : `${where}: an object`} is needed, ${show(params)} given`);
  }
  const prefix = where === '' ? '' : `${where}.`;
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && !supported.includes(key)) {
      throw bad(`${prefix}${key} is not supported; supported are ${supported.join(', ')}`);
    }
  }
  return params;
}

/** A boolean field; false when absent or null. */
export function flag(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value !== 'boolean') throw bad(`${name}: true or false is needed, ${show(value)} given`);
  return value;
}

/** A number in a range; undefined when absent or null. */
export function number(fields: Fields, name: string, min: number, max: number, isOverMin = false): number | undefined {
  const value = fields[name];
  return value === undefined || value === null ? undefined : inRange(name, value, min, max, isOverMin);
}

/** A number from (or over) `min` to `max`. */
export function inRange(name: string, value: unknown, min: number, max: number, isOverMin = false): number {
  const isInside = typeof value === 'number' && value <= max && (isOverMin ? value > min : value >= min);
  if (isInside) return value;
  throw bad(`${name}: a number ${isOverMin ? 'over' : 'from'} ${min} to ${max} is needed, ${show(value)} given`);
}

/** An integer in a range; undefined when absent or null. */
export function integer(fields: Fields, name: string, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  throw bad(`${name}: an integer from ${min} to ${max} is needed, ${show(value)} given`);
}

/** One token id. */
export function tokenId(name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TOKEN_ID)
    return value as number;
  throw bad(`${name}: token ids (integers from 0) are needed, ${show(value)} given`);
}

/** Whether it is an object with fields. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value's fields are all there is to it: a Map, a Date or Headers has none, and would pass as empty. */
export function isPlainObject(value: unknown): value is Fields {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of other windows have another `Object.prototype`, above which there is nothing either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A short form of a value for messages. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** The error of a malformed request. */
export function bad(message: string): PagewiseError {
  return new PagewiseError('bad_request', message);
}
