/**
 * The one error class of the package, and its closed set of codes.
 */

/** Stable codes of {@link PagewiseError}. The first twelve come from the engine, the others from this package. */
export const ERROR_CODES = [
  'bad_request',
  'unsupported_model',
  'corrupt_model',
  'context_too_long',
  'out_of_memory',
  'no_webgpu',
  'device_lost',
  'wrong_result',
  'queue_full',
  'deadline_exceeded',
  'cancelled',
  'network',
  'worker_crashed',
  'storage_full',
  'leader_lost',
  'version_mismatch',
] as const;

/** Those that the same call can succeed after, on the same engine. */
const RETRIABLE: readonly ErrorCode[] = ['leader_lost', 'queue_full'];

/**
 * Stable code of a {@link PagewiseError}:
 *
 * - `bad_request`: a field that is unknown, malformed or out of range; the message names it
 * - `unsupported_model`, `corrupt_model`: the file
 * - `context_too_long`, `out_of_memory`, `queue_full`: asked and allowed are in the message; `queue_full` has
 *   `retryAfterMs` where it can be estimated
 * - `deadline_exceeded`: the request's `deadline_ms` or `timeout_ms` has passed
 * - `no_webgpu`: the browser has no WebGPU, or no adapter
 * - `device_lost`: the GPU is gone; load the model again
 * - `wrong_result`: the GPU computed something that cannot be right
 * - `cancelled`: aborted, or the engine was unloaded
 * - `network`: model bytes could not be read, or a server of answers could not be asked; `url` and, where known, `status` and
 *   `offset` say which
 * - `worker_crashed`: a bug or the browser ended the worker; load the model again
 * - `storage_full`: the browser's storage has no room for a model (asked and free are in the message), or allows none
 * - `leader_lost`: the tab or worker that ran a shared engine is gone; the same request can be sent again at once
 * - `version_mismatch`: the worker's script is of another version of this package than the page's; the message says what to do
 */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Where reading a model failed, and when to try again. */
export interface ErrorDetails {
  /** URL that was being read. */
  url?: string;
  /** HTTP status of the answer. */
  status?: number;
  /** Byte offset in the file. */
  offset?: number;
  /** Milliseconds after which there will probably be room. */
  retryAfterMs?: number;
}

/** An error as it crosses the worker's border. */
export interface ErrorRecord extends ErrorDetails {
  /** See {@link ErrorCode}. */
  code: ErrorCode;
  /** What happened, in words. */
  message: string;
}

/** Everything that this package throws. */
export class PagewiseError extends Error {
  /** What kind of error it is; stable. */
  readonly code: ErrorCode;
  /** URL that was being read, for `network` and `corrupt_model`. */
  readonly url?: string;
  /** HTTP status, for `network`. */
  readonly status?: number;
  /** Byte offset in the file, for `network`. */
  readonly offset?: number;
  /** Milliseconds after which there will probably be room, for `queue_full`. */
  readonly retryAfterMs?: number;

  /** Makes an error; `cause` is kept as usual. */
  constructor(code: ErrorCode, message: string, options: ErrorDetails & { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PagewiseError';
    this.code = code;
    if (options.url !== undefined) this.url = options.url;
    if (options.status !== undefined) this.status = options.status;
    if (options.offset !== undefined) this.offset = options.offset;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }

  /** Whether the same call can succeed on the same engine, at once or after {@link retryAfterMs}. */
  get retriable(): boolean {
    return RETRIABLE.includes(this.code);
  }

  /** What crosses the worker's border. */
  toRecord(): ErrorRecord {
    const record: ErrorRecord = { code: this.code, message: this.message };
    if (this.url !== undefined) record.url = this.url;
    if (this.status !== undefined) record.status = this.status;
    if (this.offset !== undefined) record.offset = this.offset;
    if (this.retryAfterMs !== undefined) record.retryAfterMs = this.retryAfterMs;
    return record;
  }

  /** The error of a record from the other side. */
  static fromRecord(record: ErrorRecord): PagewiseError {
    return new PagewiseError(record.code, record.message, record);
  }
}

/** The error of an aborted request; the signal's reason is its `cause`. */
export function cancelledError(signal?: AbortSignal): PagewiseError {
  return new PagewiseError('cancelled', 'cancelled', { cause: signal?.reason });
}

/** Whether a thrown value is an engine's error: an object with one of our codes and a message. */
export function isErrorRecord(value: unknown): value is ErrorRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { code, message } = value as { code?: unknown; message?: unknown };
  return typeof message === 'string' && (ERROR_CODES as readonly unknown[]).includes(code);
}

/** An engine's error as a record; anything else is thrown on. */
export function recordOf(error: unknown): ErrorRecord {
  if (error instanceof PagewiseError) return error.toRecord();
  if (isErrorRecord(error)) {
    const { code, message, retryAfterMs } = error;
    return { code, message, ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}) };
  }
  throw error;
}
