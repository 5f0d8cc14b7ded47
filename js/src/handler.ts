/**
 * OpenAI's HTTP API over an engine: a request in, a response out. No server, no service worker; see `route.ts` for that.
 */

import { unlessAborted } from './abort.js';
import { randomId } from './completions.js';
import type { Engine } from './engine.js';
import { isObject, show } from './fields.js';
import { errorResponse, type HttpError, httpError, protocolError } from './http-errors.js';
import { bodyWithin } from './limited-body.js';
import { checkOptions } from './options.js';
import { eventStream, startStream } from './sse.js';
import type {
  ChatCompletionCreateParams,
  CompletionCreateParams,
  EmbeddingCreateParams,
  EngineMetrics,
  RequestOptions,
  SamplingOptions,
} from './types.js';

/** Options of {@link handleRequest}. */
export interface HandlerOptions {
  /** What comes before `chat/completions` in the path of a URL. Default `/v1/`. */
  path?: string;
  /** Longest body that is read, in bytes; of a longer one, no more than it takes to know that. Default 4 MiB. */
  maxBodyBytes?: number;
}

/** Options of {@link createFetch}. */
export interface FetchOptions {
  /** What the client was given as its `baseURL`. Default: that of OpenAI's clients, which is never contacted. */
  baseURL?: string | URL;
  /** As in {@link HandlerOptions}. */
  maxBodyBytes?: number;
}

/** The part of `fetch` that clients use. */
export type Fetch = (input: RequestInfo | URL, init?: RequestInit) => Promise<Response>;

const MAX_BODY_BYTES = 4 * 1024 ** 2;
const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' };
const OPENAI_URL = 'https://api.openai.com/v1';
/** The field that holds what is to be computed. */
const INPUTS = [
  ['chat/completions', 'messages'],
  ['embeddings', 'input'],
] as const;
const LOADED_S = Math.floor(performance.timeOrigin / 1000);

/** A request on its way. */
interface Exchange {
  engine: Engine;
  request: Request;
  maxBodyBytes: number;
  /** Headers that every response has. */
  headers: Record<string, string>;
  /** See {@link answerRequest}. */
  aheadMs: number | undefined;
}

/**
 * Answers a request to OpenAI's API: `POST chat/completions` and `completions` (with `stream: true` as server-sent events),
 * `POST embeddings`, `GET models` and `models/{id}`. What fails is a response with OpenAI's status and error object; what fails behind the
 * beginning of a stream is an event with that object, and the last one.
 *
 * Every response has `x-request-id`; what has an address and an engine also has `x-pagewise-queue-depth` (requests that wait
 * before this one) and, where it is known, `x-pagewise-estimated-wait-ms`.
 *
 * An abort of the request's signal cancels the answer; the promise then rejects with the signal's reason, as that of `fetch`.
 */
export async function handleRequest(engine: Engine, request: Request, options?: HandlerOptions): Promise<Response> {
  const checked = checkOptions('handleRequest', options, { path: 'any', maxBodyBytes: 'any' });
  return answerRequest(engine, request, checked);
}

/**
 * As {@link handleRequest}. A whole answer that takes longer than `aheadMs` once it is queued begins before it is complete:
 * where the client's abort is seen only by who writes the body. It then has no status for what fails later, so that is left
 * out for requests that may be late.
 */
export async function answerRequest(
  engine: Engine,
  request: Request,
  { path = '/v1/', maxBodyBytes = MAX_BODY_BYTES }: HandlerOptions,
  aheadMs?: number,
): Promise<Response> {
  const headers: Record<string, string> = { 'x-request-id': randomId('req') };
  const { pathname } = new URL(request.url);
  try {
    request.signal.throwIfAborted();
    const exchange: Exchange = { engine, request, maxBodyBytes, headers, aheadMs };
    const route = pathname.startsWith(path) ? routeOf(pathname.slice(path.length)) : undefined;
    if (route === undefined) throw notFound(request, pathname, path);
    if (request.method !== route.method) throw wrongMethod(request, route.method);
    Object.assign(headers, queueHeaders(await unlessAborted(engine.metrics(), request.signal)));
    return await route.answer(exchange);
  } catch (error) {
    // Nobody reads what is answered now.
    if (request.signal.aborted) throw request.signal.reason;
    const input = INPUTS.find(([end]) => pathname.endsWith(end))?.[1] ?? 'prompt';
    return errorResponse(isHttpError(error) ? error : httpError(error, input), headers);
  }
}

/**
 * A `fetch` that is answered by the engine and never goes to the network: for `new OpenAI({ fetch })` in a page, an extension
 * or wherever there can be no service worker. What is not under `baseURL` is a 404.
 */
export function createFetch(engine: Engine, options?: FetchOptions): Fetch {
  const { baseURL = OPENAI_URL, ...others } = checkOptions('createFetch', options, {
    baseURL: 'any',
    maxBodyBytes: 'any',
  });
  const base = new URL(baseURL, globalThis.location?.href);
  const path = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`;
  return async (input, init) => {
    const request = new Request(input, init);
    const { origin } = new URL(request.url);
    if (origin === base.origin) return handleRequest(engine, request, { path, ...others });
    return errorResponse(notFound(request, request.url, base.href), { 'x-request-id': randomId('req') });
  };
}

interface Route {
  method: 'GET' | 'POST';
  answer(exchange: Exchange): Promise<Response>;
}

function routeOf(path: string): Route | undefined {
  if (path === 'chat/completions') return { method: 'POST', answer: answerChat };
  if (path === 'completions') return { method: 'POST', answer: answerText };
  if (path === 'embeddings') return { method: 'POST', answer: answerEmbeddings };
  if (path === 'models') return { method: 'GET', answer: async (exchange) => listModels(exchange) };
  const id = /^models\/(.+)$/.exec(path)?.[1];
  return id === undefined ? undefined : { method: 'GET', answer: async (exchange) => describeModel(exchange, id) };
}

async function answerChat(exchange: Exchange): Promise<Response> {
  const params = (await readBody(exchange)) as unknown as ChatCompletionCreateParams;
  const { completions } = exchange.engine.chat;
  const { signal } = exchange.request;
  if (params.stream !== true) return whole(exchange, params, (options) => completions.create(params, options));
  const started = await startStream(params, (asked) => completions.create({ ...params, ...asked }, { signal }));
  return eventStream(started, exchange.headers, signal);
}

async function answerText(exchange: Exchange): Promise<Response> {
  const params = (await readBody(exchange)) as unknown as CompletionCreateParams;
  const { completions } = exchange.engine;
  const { signal } = exchange.request;
  if (params.stream !== true) return whole(exchange, params, (options) => completions.create(params, options));
  const started = await startStream(params, (asked) => completions.create({ ...params, ...asked }, { signal }));
  return eventStream(started, exchange.headers, signal);
}

async function answerEmbeddings(exchange: Exchange): Promise<Response> {
  const params = (await readBody(exchange)) as unknown as EmbeddingCreateParams;
  return whole(exchange, params, (options) => exchange.engine.embeddings.create(params, options));
}

async function whole(
  exchange: Exchange,
  { deadline_ms, timeout_ms }: Pick<SamplingOptions, 'deadline_ms' | 'timeout_ms'>,
  create: (options: RequestOptions) => Promise<object>,
): Promise<Response> {
  const { aheadMs, request } = exchange;
  const { signal } = request;
  if (aheadMs === undefined || (deadline_ms ?? timeout_ms ?? null) !== null) {
    return json(exchange, await create({ signal }));
  }
  let timer: ReturnType<typeof setTimeout> | undefined;
  let answering: Promise<object> | undefined;
  const late = new Promise<null>((resolve) => {
    const onQueued = (): void => {
      // Of several texts, the first.
      timer ??= setTimeout(() => resolve(null), aheadMs);
    };
    answering = create({ signal, onQueued });
  });
  const answer = (await Promise.race([late, answering]).finally(() => clearTimeout(timer))) ?? null;
  if (answer !== null) return json(exchange, answer);
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(JSON.stringify(await answering)));
      controller.close();
    },
  });
  return new Response(body, { headers: { ...JSON_HEADERS, ...exchange.headers } });
}

function listModels(exchange: Exchange): Response {
  return json(exchange, { object: 'list', data: [modelOf(exchange.engine)] });
}

function describeModel(exchange: Exchange, encoded: string): Response {
  let id = encoded;
  try {
    id = decodeURIComponent(encoded);
  } catch {
    // No id of a model looks like this.
  }
  checkModel(exchange.engine, id);
  return json(exchange, modelOf(exchange.engine));
}

function modelOf({ info }: Engine): object {
  const { id, name, contextLength } = info;
  return { id, object: 'model', created: LOADED_S, owned_by: 'pagewise', name, context_length: contextLength };
}

function checkModel({ info }: Engine, model: unknown): void {
  // Anything but a text is told apart by the check of the request.
  if (typeof model !== 'string' || model === info.id || model === info.name) return;
  throw protocolError(404, 'model_not_found', `${show(model)} is not loaded; loaded is ${show(info.id)}`, 'model');
}

/** The body's fields, which are checked by the engine. */
async function readBody({ engine, request, maxBodyBytes }: Exchange): Promise<Record<string, unknown>> {
  // A body that never ends is not waited for once nobody waits for the answer.
  const bytes = await unlessAborted(bodyWithin(request, maxBodyBytes), request.signal);
  if (bytes === null) throw protocolError(413, 'body_too_large', `the body is longer than ${maxBodyBytes} bytes`);
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw protocolError(400, 'invalid_json', `the body is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(body)) throw protocolError(400, 'invalid_json', `the body has to be an object, ${show(body)} given`);
  checkModel(engine, body.model);
  return body;
}

function json({ headers }: Exchange, value: object): Response {
  return new Response(JSON.stringify(value), { headers: { ...JSON_HEADERS, ...headers } });
}

/** What waits before a request that comes now. */
function queueHeaders({ numWaiting, numRunning, e2eMs, queueMs }: EngineMetrics): Record<string, string> {
  const headers: Record<string, string> = { 'x-pagewise-queue-depth': String(numWaiting) };
  const hasPace = e2eMs.count > 0 && queueMs.count > 0;
  if (numWaiting > 0 && !hasPace) return headers;
  // So long an answer takes when it does not wait.
  const serviceMs = hasPace ? Math.max(0, e2eMs.sum / e2eMs.count - queueMs.sum / queueMs.count) : 0;
  const waitMs = (serviceMs * numWaiting) / Math.max(1, numRunning);
  return { ...headers, 'x-pagewise-estimated-wait-ms': String(Math.round(waitMs)) };
}

function notFound({ method }: Request, what: string, path: string): HttpError {
  const known = 'chat/completions, completions, embeddings, models and models/{id}';
  return protocolError(
    404,
    'unknown_url',
    `${method} ${what}: there is nothing here; under ${path} there are ${known}`,
  );
}

function wrongMethod({ method }: Request, allowed: string): HttpError {
  const error = protocolError(405, 'method_not_allowed', `${method} is not allowed here, ${allowed} is`);
  return { ...error, headers: { allow: allowed } };
}

function isHttpError(error: unknown): error is HttpError {
  return isObject(error) && isObject(error.body) && typeof error.status === 'number' && isObject(error.headers);
}
