/** An error as the page shows it: which advice fits, and the engine's own words. */
import type { ProblemCode } from './advice';

export interface Problem {
  readonly code: ProblemCode;
  /** The engine's message, which holds the numbers: what was asked and what is allowed. */
  readonly detail: string;
}

const KNOWN: Readonly<Record<string, ProblemCode>> = {
  bad_request: 'bad_request',
  unsupported_model: 'unsupported_model',
  corrupt_model: 'corrupt_model',
  context_too_long: 'context_too_long',
  out_of_memory: 'out_of_memory',
  no_webgpu: 'no_webgpu',
  no_adapter: 'no_adapter',
  device_lost: 'device_lost',
  network: 'network',
  wrong_result: 'wrong_result',
  storage_full: 'storage_full',
  worker_crashed: 'device_lost',
  leader_lost: 'device_lost',
  version_mismatch: 'network',
};

/** Whether `error` only says that somebody cancelled. */
export function isCancelled(error: unknown): boolean {
  return (
    codeOf(error) === 'cancelled' ||
    (typeof error === 'object' && error !== null && 'name' in error && error.name === 'AbortError')
  );
}

/** Turns anything thrown into a problem. */
export function toProblem(error: unknown): Problem {
  const detail = error instanceof Error ? error.message : String(error);
  return { code: KNOWN[codeOf(error)] ?? 'unknown', detail };
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return String(error.code);
}
