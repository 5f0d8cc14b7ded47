/**
 * Errors as OpenAI's API has them: a status, and `{error: {message, type, param, code}}`.
 */

import { type ErrorCode, PagewiseError } from './errors.js';

/** The `error` of a response that is one. */
export interface OpenAIErrorBody {
  /** What happened, in words. */
  message: string;
  /** Family of the error, such as `invalid_request_error`. */
  type: string;
  /** The field of the request that is wrong; null where it is none, or not known. */
  param: string | null;
  /** A stable code: that of the {@link PagewiseError}, except where OpenAI has one of its own. */
  code: string;
}

/** An error, ready to be answered. */
export interface HttpError {
  status: number;
  body: OpenAIErrorBody;
  /** When to come again, or that it is no use. */
  headers: Record<string, string>;
}

interface Kind {
  status: number;
  type: string;
  /** Whether the same request can succeed a little later. OpenAI's clients try by themselves unless they are told not to. */
  isWorthRetrying: boolean;
}

const INVALID = 'invalid_request_error';
const SERVER = 'server_error';
const gone: Kind = { status: 503, type: SERVER, isWorthRetrying: false };
const broken: Kind = { status: 500, type: SERVER, isWorthRetrying: false };

const KINDS: Readonly<Record<ErrorCode, Kind>> = {
  bad_request: { status: 400, type: INVALID, isWorthRetrying: false },
  context_too_long: { status: 400, type: INVALID, isWorthRetrying: false },
  queue_full: { status: 429, type: 'rate_limit_error', isWorthRetrying: true },
  deadline_exceeded: { status: 504, type: 'timeout_error', isWorthRetrying: false },
  // Whoever aborts gets no response: the engine was unloaded, and another one may come.
  cancelled: { ...gone, isWorthRetrying: true },
  leader_lost: { ...gone, isWorthRetrying: true },
  device_lost: gone,
  worker_crashed: gone,
  version_mismatch: gone,
  no_webgpu: gone,
  out_of_memory: gone,
  storage_full: gone,
  network: gone,
  wrong_result: broken,
  unsupported_model: { status: 400, type: INVALID, isWorthRetrying: false },
  corrupt_model: broken,
};

/** Seconds to wait where nothing better is known. */
const RETRY_S = 1;

/** An error of the protocol itself: a wrong address, method or body. */
export function protocolError(status: number, code: string, message: string, param: string | null = null): HttpError {
  return { status, body: { message, type: INVALID, param, code }, headers: {} };
}

/** What a request fails with; `input` is the field that holds the prompt. */
export function httpError(error: unknown, input: string | null = null): HttpError {
  if (!(error instanceof PagewiseError)) {
    const message = `unexpected: ${error instanceof Error ? error.message : String(error)}`;
    return { status: 500, body: { message, type: SERVER, param: null, code: 'internal_error' }, headers: noRetry() };
  }
  const { code, message } = error;
  const { status, type, isWorthRetrying } = KINDS[code];
  const headers = isWorthRetrying ? retry(error.retryAfterMs) : status < 500 ? {} : noRetry();
  const body = { message, type, param: null as string | null, code: code as string };
  if (code === 'bad_request') {
    body.param = paramOf(message);
    body.code = isUnsupported(message) ? 'unsupported_parameter' : 'invalid_value';
  } else if (code === 'context_too_long') {
    body.param = input;
    body.code = 'context_length_exceeded';
  }
  return { status, body, headers };
}

/** The response that tells of an error. */
export function errorResponse({ status, body, headers }: HttpError, more: Record<string, string> = {}): Response {
  const all = { 'content-type': 'application/json', 'cache-control': 'no-store', ...more, ...headers };
  return new Response(JSON.stringify({ error: body }), { status, headers: all });
}

/** Every message of a `bad_request`, the engine's included, begins with the field if there is one, and a path within a schema. */
function paramOf(message: string): string | null {
  return /^([a-z_]+(?:\[\d+\]|\.\w+)*)(?:\/.*?)?(?:: | is not supported)/.exec(message)?.[1] ?? null;
}

function isUnsupported(message: string): boolean {
  return /^\S+ is not supported/.test(message);
}

/** Both forms: OpenAI's clients read the first, everybody else the second. */
function retry(ms: number = RETRY_S * 1000): Record<string, string> {
  return { 'retry-after-ms': String(Math.ceil(ms)), 'retry-after': String(Math.max(1, Math.ceil(ms / 1000))) };
}

function noRetry(): Record<string, string> {
  return { 'x-should-retry': 'false' };
}
