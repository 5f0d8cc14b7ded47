/**
 * When a request has its turn and how long it may take, checked.
 */

import { bad, type Fields, fieldsOf, flag, inRange, isPlainObject, number, show } from './fields.js';
import type { EngineRequest, EngineScheduling } from './protocol.js';
import type { Priority } from './types.js';

const LEVELS: Readonly<Record<Exclude<Priority, number>, number>> = { interactive: 1, normal: 0, batch: -1 };
const MAX_PRIORITY = 1000;
/** A year; whoever wants more wants no limit. */
const MAX_MS = 365 * 24 * 3600 * 1000;
const TIMEOUT_FIELDS: readonly string[] = ['queue', 'total'];
const STREAM_FIELDS: readonly string[] = ['include_usage', 'include_progress'];

/** Longer ones would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What a streamed answer is accompanied by. */
export interface CheckedStreamOptions {
  /** Whether the last chunk carries usage. */
  includeUsage: boolean;
  /** Whether chunks tell of the progress until the first token. */
  includeProgress: boolean;
}

/** Checks `priority`, `deadline_ms` and `timeout_ms` of a request. */
export function checkScheduling(request: Fields, reportsProgress: boolean): EngineScheduling {
  const scheduling: EngineScheduling = { priority: checkPriority(request.priority), reportsProgress };
  const deadlineMs = number(request, 'deadline_ms', 0, MAX_MS, true);
  if (deadlineMs !== undefined) scheduling.deadlineMs = deadlineMs;
  const { queue, total } = checkTimeouts(request.timeout_ms);
  if (queue !== undefined) scheduling.queueTimeoutMs = queue;
  if (total !== undefined) scheduling.totalTimeoutMs = total;
  return scheduling;
}

/** Checks `stream_options`. */
export function checkStreamOptions(value: unknown, stream: boolean): CheckedStreamOptions {
  if (value === undefined || value === null) return { includeUsage: false, includeProgress: false };
  if (!isPlainObject(value)) throw bad(`stream_options: a plain object is needed, ${show(value)} given`);
  if (!stream) throw bad('stream_options: only with stream: true');
  const fields = fieldsOf(value, STREAM_FIELDS, 'stream_options');
  return { includeUsage: flag(fields, 'include_usage'), includeProgress: flag(fields, 'include_progress') };
}

/** A request that has some of its time behind it. How long it may wait is counted anew: it waits again. */
export function afterMs(request: EngineRequest, passedMs: number): EngineRequest {
  const left = { ...request };
  for (const name of ['deadlineMs', 'totalTimeoutMs'] as const) {
    const allowed = left[name];
    if (allowed !== undefined) left[name] = Math.max(0, Math.floor(allowed - passedMs));
  }
  return left;
}

function checkPriority(value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === 'string' && Object.hasOwn(LEVELS, value)) return LEVELS[value as keyof typeof LEVELS];
  if (Number.isInteger(value) && Math.abs(value as number) <= MAX_PRIORITY) return value as number;
  const levels = Object.keys(LEVELS).map(show).join(', ');
  throw bad(
    `priority: ${levels} or an integer from -${MAX_PRIORITY} to ${MAX_PRIORITY} is needed, ${show(value)} given`,
  );
}

function checkTimeouts(value: unknown): { queue?: number; total?: number } {
  if (value === undefined || value === null) return {};
  if (!isPlainObject(value)) {
    if (typeof value === 'number') return { total: inRange('timeout_ms', value, 0, MAX_MS, true) };
    throw bad(`timeout_ms: a number or {queue, total} is needed, ${show(value)} given`);
  }
  const { queue, total } = fieldsOf(value, TIMEOUT_FIELDS, 'timeout_ms');
  const timeouts: { queue?: number; total?: number } = {};
  for (const [name, given] of Object.entries({ queue, total })) {
    if (given === undefined || given === null) continue;
    timeouts[name as 'queue' | 'total'] = inRange(`timeout_ms.${name}`, given, 0, MAX_MS, true);
  }
  return timeouts;
}
