/**
 * A client of OpenAI-compatible servers (vLLM, llama-server and so on): our requests out, our shapes and errors back.
 */

import type { EmbeddingCreateParams } from './embedding-types.js';
import { cancelledError, type ErrorCode, PagewiseError } from './errors.js';
import { bad, isObject, show } from './fields.js';
import type { ChatCompletionCreateParams, CompletionCreateParams, RequestTimeouts, Usage } from './openai.js';
import { type GivingUp, type ReadAhead, readAhead } from './read-ahead.js';
import { type NetworkEnvironment, TransientError, withRetries } from './retry.js';
import { LONGEST_TIMER_MS } from './schedule-request.js';
import { eventData } from './sse-reader.js';

/** A server that has the model, or another one. */
export interface RemoteOptions {
  /** Its address up to `chat/completions`, such as `https://models.example/v1`. */
  baseURL: string | URL;
  /** Its name of the model. Default: the first that `GET models` tells. */
  model?: string;
  /** Sent as `Authorization: Bearer …`. Whoever can open the page can read it. */
  apiKey?: string;
  /** Further headers. */
  headers?: Readonly<Record<string, string>>;
}

/** Fields that say nothing to another server: what they do does not change the answer, or is done here. */
const OURS = ['priority', 'deadline_ms', 'timeout_ms', 'cache', 'prompt_cache_key'] as const;

/** What servers know under other names, in other languages or not at all: an answer without it would be another one. */
const LOCAL_ONLY = ['grammar', 'regex', 'allowed_token_ids', 'stop_token_ids'] as const;

/** A request of any kind, in our shape. */
export type RemoteParams = ChatCompletionCreateParams | CompletionCreateParams | EmbeddingCreateParams;

/** What a server sends, before it is ours. */
export type RawAnswer = Record<string, unknown>;

/** Requests to one server. */
export class RemoteClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #network: NetworkEnvironment;
  #model: string | undefined;

  /** A client; nothing is sent yet. */
  constructor({ baseURL, model, apiKey, headers }: RemoteOptions, network: NetworkEnvironment) {
    const { href } = new URL(baseURL, globalThis.location?.href);
    this.#base = href.endsWith('/') ? href : `${href}/`;
    this.#headers = { ...headers, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
    this.#network = network;
    this.#model = model;
  }

  /** The server's address. */
  get baseURL(): string {
    return this.#base;
  }

  /** The server's name of the model: the given one, else the first that it tells. */
  async model(signal?: AbortSignal): Promise<string> {
    if (this.#model !== undefined) return this.#model;
    const response = await this.#send('models', undefined, signal);
    const list = await this.#json(response, signal);
    const [first] = Array.isArray(list.data) ? list.data : [];
    if (!isObject(first) || typeof first.id !== 'string') throw this.#error('network', 'models: the server names none');
    this.#model = first.id;
    return first.id;
  }

  /** A whole answer. */
  async ask(path: string, params: RemoteParams, signal?: AbortSignal): Promise<RawAnswer> {
    const limit = new TimeLimit(params, signal);
    try {
      const body = { ...withoutOurs(params), model: await this.model(limit.signal) };
      const answer = await this.#json(await this.#send(path, body, limit.signal), limit.signal);
      // Some servers and gateways answer 200 whatever happened.
      if (isGiven(answer.error)) throw this.#refusal(path, 500, answer);
      return withUsage(answer);
    } catch (error) {
      throw limit.late ?? error;
    } finally {
      limit.release();
    }
  }

  /**
   * A streamed one, chunk by chunk. The promise resolves when the server has begun to answer; what comes then is read whether
   * somebody wants it or not, so that nothing stays open for longer than the answer takes.
   */
  async stream(path: string, params: RemoteParams, signal?: AbortSignal): Promise<ReadAhead<RawAnswer>> {
    const limit = new TimeLimit(params, signal);
    try {
      const body = { ...withoutOurs(params), model: await this.model(limit.signal) };
      const response = await this.#send(path, body, limit.signal);
      if (response.body === null) throw this.#error('network', `${path}: the answer is empty`);
      return readAhead(this.#chunks(path, response.body, limit), limit);
    } catch (error) {
      limit.release();
      throw limit.late ?? error;
    }
  }

  async *#chunks(
    path: string,
    body: ReadableStream<Uint8Array>,
    limit: TimeLimit,
  ): AsyncGenerator<RawAnswer, undefined> {
    const { signal } = limit;
    try {
      for await (const data of eventData(body, signal)) {
        // What has come already is not read on after an abort.
        if (signal.aborted) throw cancelledError(signal);
        if (data === '[DONE]') return undefined;
        const chunk = this.#parse(path, data);
        if (isGiven(chunk.error)) throw this.#refusal(path, 500, chunk);
        yield withUsage(chunk);
      }
      throw this.#error('network', `${path}: the answer broke off`);
    } catch (error) {
      throw limit.late ?? this.#failure(path, error, signal);
    } finally {
      limit.release();
    }
  }

  /** Sends a request. As long as nothing of an answer has come, what may pass is tried again. */
  async #send(path: string, body: object | undefined, signal?: AbortSignal): Promise<Response> {
    const url = `${this.#base}${path}`;
    const json = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const init = { ...json, headers: { ...type, ...this.#headers }, ...(signal ? { signal } : {}) };
    const patient = { ...this.#network, sleep: (ms: number) => unlessAborted(this.#network.sleep(ms), signal) };
    return withRetries(
      patient,
      () => 0,
      async () => {
        if (signal?.aborted) throw cancelledError(signal);
        let response: Response;
        try {
          response = await this.#network.fetch(url, init);
        } catch (cause) {
          if (signal?.aborted) throw cancelledError(signal);
          const hint = 'is the server there, and does it (CORS) and the page (connect-src) allow it?';
          throw new TransientError('network', `${url}: ${(cause as Error).message}: ${hint}`, { url, cause });
        }
        if (response.ok) return response;
        const text = await response.text().catch(() => '');
        throw this.#refusal(path, response.status, parseOr(text, { error: { message: text.slice(0, 200) } }), response);
      },
    );
  }

  async #json(response: Response, signal?: AbortSignal): Promise<RawAnswer> {
    try {
      return this.#parse(response.url, await response.text());
    } catch (error) {
      throw this.#failure(response.url, error, signal);
    }
  }

  #parse(what: string, text: string): RawAnswer {
    const value = parseOr(text, undefined);
    if (!isObject(value)) throw this.#error('network', `${what}: the server's answer is not JSON: ${show(text)}`);
    return value;
  }

  /** What a read fails with. */
  #failure(what: string, error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return cancelledError(signal);
    if (error instanceof PagewiseError) return error;
    return this.#error('network', `${what}: the answer broke off: ${(error as Error).message}`);
  }

  #error(code: ErrorCode, message: string): PagewiseError {
    return new PagewiseError(code, message, { url: this.#base });
  }

  /** The error of a status and an error object. */
  #refusal(path: string, status: number, body: RawAnswer, response?: Response): PagewiseError {
    const error = isObject(body.error) ? body.error : body;
    const message = `${path}: the server answered ${status}: ${String(error.message ?? body.detail ?? 'no reason given')}`;
    const url = this.#base;
    if (status === 429) return new PagewiseError('queue_full', message, { url, status, ...retryAfter(response) });
    if (status === 408 || status === 504) return new PagewiseError('deadline_exceeded', message, { url, status });
    if (status === 502 || status === 503) return new TransientError('network', message, { url, status });
    if (status >= 500 || status === 401 || status === 403)
      return new PagewiseError('network', message, { url, status });
    const isTooLong = /context_length_exceeded|exceed_context_size|maximum context length|context (size|window)/i;
    const code = isTooLong.test(`${String(error.code)} ${String(error.type)} ${message}`)
      ? 'context_too_long'
      : 'bad_request';
    return new PagewiseError(code, message, { url, status });
  }
}

/** A router has one model, whose name is another one in each place: what a request calls it is not looked at. */
export function withoutModel<T extends object>(params: T): T {
  if (!isObject(params)) return params;
  const { model: _, ...others } = params as T & { model?: unknown };
  return others as T;
}

/** Some servers write what there is not as null. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Whatever the server calls it, where ours is; 0 where it says nothing. */
function withUsage(answer: RawAnswer): RawAnswer {
  if (!isObject(answer.usage)) return answer;
  const { prompt_tokens = 0, completion_tokens = 0, total_tokens, prompt_tokens_details: details } = answer.usage;
  const cached = isObject(details) ? details.cached_tokens : isObject(answer.timings) ? answer.timings.cache_n : 0;
  const usage: Usage = {
    prompt_tokens: Number(prompt_tokens),
    completion_tokens: Number(completion_tokens),
    total_tokens: Number(total_tokens ?? Number(prompt_tokens) + Number(completion_tokens)),
    prompt_tokens_details: { cached_tokens: Number(cached ?? 0) },
  };
  return { ...answer, usage };
}

function withoutOurs(params: object): Record<string, unknown> {
  const sent: Record<string, unknown> = { ...params };
  const unknown = LOCAL_ONLY.find((name) => sent[name] !== undefined && sent[name] !== null);
  if (unknown !== undefined) throw bad(`${unknown}: only on this device; servers read it differently or not at all`);
  // vLLM's name, and llama.cpp's.
  if (typeof sent.repetition_penalty === 'number') sent.repeat_penalty = sent.repetition_penalty;
  for (const name of OURS) delete sent[name];
  if (Array.isArray(sent.messages)) sent.messages = sent.messages.map(withoutMarks);
  return sent;
}

/** A message without `cache_control`, which marks prefixes of our cache. */
function withoutMarks(message: Record<string, unknown>): object {
  const { cache_control: _, content, ...others } = message;
  if (!Array.isArray(content)) return { ...others, content };
  return { ...others, content: content.map(({ cache_control: __, ...part }) => part) };
}

/** `deadline_ms` and `timeout_ms`, kept here, and whoever gives up before. */
class TimeLimit implements GivingUp {
  /** The caller's; it is also aborted when the time has passed. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  #late: PagewiseError | undefined;

  constructor({ deadline_ms, timeout_ms }: RemoteParams, given?: AbortSignal) {
    const total =
      typeof timeout_ms === 'number' ? timeout_ms : (timeout_ms as RequestTimeouts | null | undefined)?.total;
    const ms = Math.min(deadline_ms ?? Number.POSITIVE_INFINITY, total ?? Number.POSITIVE_INFINITY);
    const onLate = (): void => {
      this.#late = new PagewiseError('deadline_exceeded', `deadline exceeded: ${ms} ms have passed`);
      this.#controller.abort();
    };
    if (ms <= LONGEST_TIMER_MS) this.#timer = setTimeout(onLate, ms);
    const { signal } = this.#controller;
    this.signal = given === undefined ? signal : AbortSignal.any([given, signal]);
  }

  /** The error, if the time has passed. */
  get late(): PagewiseError | undefined {
    return this.#late;
  }

  get isGivenUp(): boolean {
    return this.signal.aborted && this.#late === undefined;
  }

  stop(): void {
    this.#controller.abort();
  }

  /** Nothing more is limited. */
  release(): void {
    clearTimeout(this.#timer);
  }
}

function retryAfter(response: Response | undefined): { retryAfterMs?: number } {
  const seconds = Number(response?.headers.get('retry-after') ?? Number.NaN);
  return seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {};
}

function parseOr<T>(text: string, otherwise: T): RawAnswer | T {
  try {
    return JSON.parse(text) as RawAnswer;
  } catch {
    return otherwise;
  }
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  if (signal.aborted) return Promise.reject(cancelledError(signal));
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(cancelledError(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
