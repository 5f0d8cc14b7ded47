/**
 * Trying again after failures that may pass: which ones, how often, how long to wait.
 */

import { PagewiseError } from './errors.js';

/** Attempts after the first one that brings no progress. */
export const MAX_RETRIES = 4;
/** The same for downloads that are kept, which have 38 s to get over a change of networks. */
export const MAX_DOWNLOAD_RETRIES = 7;
/** Wait before the first of them; each later wait is twice as long. */
export const FIRST_DELAY_MS = 300;
/** A request that brings no byte for this long has failed. */
export const STALL_MS = 30_000;

/** What reading over the network needs from outside. */
export interface NetworkEnvironment {
  /** As the global `fetch`. */
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** Resolves after a while. */
  sleep(ms: number): Promise<void>;
  /** See {@link STALL_MS}. */
  stallMs: number;
  /** The page's; absent: unknown. */
  origin?: string;
}

/** The real network. */
export const NETWORK: NetworkEnvironment = {
  fetch: (url, init) => fetch(url, init),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  stallMs: STALL_MS,
  origin: globalThis.location?.origin,
};

/** A failure that may pass when tried again. */
export class TransientError extends PagewiseError {}

/** Whether an HTTP status may be another one a moment later. */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/**
 * Runs `attempt` until it succeeds, throws something that is not a {@link TransientError}, or has failed
 * `maxRetries` + 1 times without `progress()` having changed in between.
 */
export async function withRetries<T>(
  environment: NetworkEnvironment,
  progress: () => number,
  attempt: () => Promise<T>,
  maxRetries = MAX_RETRIES,
): Promise<T> {
  let failures = 0;
  for (;;) {
    const before = progress();
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof TransientError)) throw error;
      failures = progress() > before ? 1 : failures + 1;
      if (failures > maxRetries) {
        throw new PagewiseError('network', `${error.message} (tried ${failures} times)`, error);
      }
      await environment.sleep(FIRST_DELAY_MS * 2 ** (failures - 1));
    }
  }
}

/** `promise`, or a {@link TransientError} made by `late` when it takes longer than `ms`. */
export async function within<T>(promise: Promise<T>, ms: number, late: () => TransientError): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
