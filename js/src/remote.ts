/**
 * A model on this device or on a server, by a rule that the page states: for devices that cannot run it.
 *
 * ```ts
 * import { Router } from 'pagewise/remote';
 *
 * const router = await Router.load('smollm2-135m-instruct', {
 *   policy: 'prefer-local',
 *   remote: { baseURL: 'https://models.example/v1' },
 * });
 * const answer = await router.chat.completions.create({ messages: [{ role: 'user', content: 'Hi' }] });
 * console.log(answer.computed_on, answer.choices[0].message.content);
 * ```
 *
 * Nothing leaves the device unless the policy says so, and the default is that it does not. Each answer, and each chunk of
 * one, says in `computed_on` where it was computed.
 *
 * @module
 */

import { randomId, unixSeconds } from './completions.js';
import { Engine } from './engine.js';
import { PagewiseError } from './errors.js';
import { bad, isObject, show } from './fields.js';
import { checkOptions } from './options.js';
import { type RawAnswer, RemoteClient, type RemoteOptions, type RemoteParams, withoutModel } from './remote-client.js';
import { RoutedEmbeddings } from './remote-embeddings.js';
import { checkChatRequest, checkTextRequest } from './request.js';
import { NETWORK } from './retry.js';
import type { Stream } from './stream.js';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionCreateParamsStreaming,
  Completion,
  CompletionCreateParams,
  CompletionCreateParamsNonStreaming,
  CompletionCreateParamsStreaming,
  LoadOptions,
  ModelSource,
  RequestOptions,
} from './types.js';

export type { RemoteOptions, RemoteParams } from './remote-client.js';
export { RoutedEmbeddings } from './remote-embeddings.js';

/** Where an answer is computed. */
export type Place = 'local' | 'remote';

/** What a policy knows when it decides on a request. */
export interface Situation {
  /** Why this device cannot answer; null if it can. */
  error: PagewiseError | null;
  /** The request. */
  params: RemoteParams;
}

/**
 * Who answers: `local` (default) never asks the server, `remote` never loads the model, `prefer-local` asks the server only
 * where this device cannot run the model; a function decides on every request.
 */
export type Policy = 'local' | 'remote' | 'prefer-local' | ((situation: Situation) => Place);

/** Options of {@link Router.load}: those of `Engine.load`, and: */
export interface RouterOptions extends LoadOptions {
  /** Who answers. Default `local`. */
  policy?: Policy;
  /** The server. Needed by every policy but `local`. */
  remote?: RemoteOptions;
}

/** An answer or a chunk that says where it was computed. `timings` and `cache` are there where that was here. */
export type Routed<T> = Omit<T, 'timings' | 'cache'> &
  Partial<Pick<T, Extract<keyof T, 'timings' | 'cache'>>> & {
    /** Where. */
    computed_on: Place;
  };

/** A streamed answer: read it once; leaving the loop ends the request. One that nobody reads ends with the answer. */
export interface RoutedStream<Chunk> extends AsyncIterable<Chunk> {
  /** Where it is computed. */
  readonly computed_on: Place;
  /** Ends the request: the loop throws `cancelled`. Does nothing when the answer is complete. */
  cancel(): void;
}

/** Codes that say that this device, not the request or the network, is what the model cannot run on. */
const CANNOT: readonly string[] = ['no_webgpu', 'out_of_memory', 'unsupported_model', 'device_lost', 'wrong_result'];

/** A model that is asked here or elsewhere. Make one with {@link Router.load}. */
export class Router {
  /** The engine, if the model was loaded. */
  readonly engine: Engine | null;
  /** As an engine's. */
  readonly chat: { readonly completions: RoutedChat };
  /** As an engine's. */
  readonly completions: RoutedCompletions;
  /** As an engine's. */
  readonly embeddings: RoutedEmbeddings;
  readonly #error: PagewiseError | null;
  readonly #remote: RemoteClient | null;

  private constructor(engine: Engine | null, error: PagewiseError | null, remote: RemoteClient | null, policy: Policy) {
    this.engine = engine;
    this.#error = error;
    this.#remote = remote;
    const decide = (params: Situation['params']): Place => this.#decide(policy, params);
    const places = { engine, remote, decide };
    this.chat = { completions: new RoutedChat(places) };
    this.completions = new RoutedCompletions(places);
    this.embeddings = new RoutedEmbeddings(places);
  }

  /**
   * Loads the model, as far as the policy wants it here. Rejects as `Engine.load` does; but that the device cannot run the
   * model (`no_webgpu`, `out_of_memory`, `unsupported_model`, …) is no failure where the policy can ask the server instead:
   * {@link error} says it. A network that fails or a broken file is not a reason to ask somebody else.
   */
  static async load(source: ModelSource, options: RouterOptions = {}): Promise<Router> {
    const { policy = 'local', remote, ...load } = options;
    checkPolicy(policy);
    if (policy !== 'local' && remote === undefined) throw bad(`remote: policy ${show(policy)} needs a server`);
    const client = remote === undefined || policy === 'local' ? null : new RemoteClient(checkRemote(remote), NETWORK);
    if (policy === 'remote') return new Router(null, null, client, policy);
    try {
      return new Router(await Engine.load(source, load), null, client, policy);
    } catch (error) {
      if (client === null || !(error instanceof PagewiseError) || !CANNOT.includes(error.code)) throw error;
      return new Router(null, error, client, policy);
    }
  }

  /** What answers are said to come from: the engine's id, else the server's address. */
  get info(): { readonly id: string } {
    return { id: this.engine?.info.id ?? this.#remote?.baseURL ?? '' };
  }

  /** Why this device cannot answer; null if it can, or was not to. */
  get error(): PagewiseError | null {
    return this.#error ?? this.engine?.ended ?? null;
  }

  /** As an engine's. */
  async unload(): Promise<void> {
    await this.engine?.unload();
  }

  #decide(policy: Policy, params: Situation['params']): Place {
    const { error } = this;
    // An engine that was unloaded was not lost: nobody asked for another place.
    const isUnable = error !== null && CANNOT.includes(error.code);
    if (policy === 'prefer-local') return isUnable ? 'remote' : 'local';
    const place = typeof policy === 'function' ? policy({ error, params }) : policy;
    if (place !== 'local' && place !== 'remote')
      throw bad(`policy: local or remote is needed, ${show(place)} returned`);
    if (place === 'local' && this.engine === null) throw error ?? bad('policy: the model is not loaded');
    return place;
  }
}

/**
 * Who can be asked, and who is.
 *
 * @internal
 */
export interface Places {
  engine: Engine | null;
  remote: RemoteClient | null;
  decide(params: Situation['params']): Place;
}

/** `chat.completions` of a {@link Router}. */
export class RoutedChat {
  readonly #places: Places;

  /** @internal */
  constructor(places: Places) {
    this.#places = places;
  }

  /** As an engine's; the request is checked in the same way wherever it is answered. */
  create(
    params: ChatCompletionCreateParamsStreaming,
    options?: RequestOptions,
  ): Promise<RoutedStream<Routed<ChatCompletionChunk>>>;
  create(params: ChatCompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<Routed<ChatCompletion>>;
  async create(params: ChatCompletionCreateParams, options: RequestOptions = {}): Promise<unknown> {
    const { stream } = checkChatRequest(withoutModel(params), []);
    const place = this.#places.decide(params);
    const { engine, remote } = this.#places;
    if (place === 'remote') return askRemote(remote, 'chat/completions', 'chatcmpl', params, stream, options);
    return here(await (engine as Engine).chat.completions.create(withoutModel(params), options), stream);
  }
}

/** `completions` of a {@link Router}. */
export class RoutedCompletions {
  readonly #places: Places;

  /** @internal */
  constructor(places: Places) {
    this.#places = places;
  }

  /** As an engine's. */
  create(params: CompletionCreateParamsStreaming, options?: RequestOptions): Promise<RoutedStream<Routed<Completion>>>;
  create(params: CompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<Routed<Completion>>;
  async create(params: CompletionCreateParams, options: RequestOptions = {}): Promise<unknown> {
    const { stream } = checkTextRequest(withoutModel(params), []);
    const place = this.#places.decide(params);
    const { engine, remote } = this.#places;
    if (place === 'remote') return askRemote(remote, 'completions', 'cmpl', params, stream, options);
    return here(await (engine as Engine).completions.create(withoutModel(params), options), stream);
  }
}

function here(answer: object, stream: boolean): object {
  if (!stream) return { ...answer, computed_on: 'local' };
  const chunks = answer as Stream<object>;
  return routed({ chunks, cancel: () => chunks.cancel() }, 'local', (chunk) => ({ ...chunk, computed_on: 'local' }));
}

async function askRemote(
  remote: RemoteClient | null,
  path: string,
  prefix: string,
  params: ChatCompletionCreateParams | CompletionCreateParams,
  stream: boolean,
  { signal, onQueued }: RequestOptions,
): Promise<unknown> {
  if (remote === null) throw bad('remote: there is no server');
  const head = { id: randomId(prefix), created: unixSeconds() };
  const own = (answer: RawAnswer): RawAnswer => ownShape(head, answer);
  const sent = withoutModel(params);
  if (!stream) {
    const answer = await remote.ask(path, sent, signal);
    onQueued?.();
    if (!hasChoices(answer)) throw noAnswer(remote, path, answer);
    return own(answer);
  }
  const chunks = await remote.stream(path, sent, signal);
  try {
    onQueued?.();
  } catch (error) {
    chunks.cancel();
    throw error;
  }
  return routed({ chunks: chunks.values, cancel: chunks.cancel }, 'remote', own);
}

/** What says nothing is no empty answer. */
function hasChoices({ choices }: RawAnswer): boolean {
  const isChoice = (choice: unknown): boolean =>
    isObject(choice) && (isObject(choice.message) || typeof choice.text === 'string');
  return Array.isArray(choices) && choices.length > 0 && choices.every(isChoice);
}

function noAnswer({ baseURL }: RemoteClient, path: string, answer: RawAnswer): PagewiseError {
  const found = Object.keys(answer).slice(0, 8).join(', ');
  return new PagewiseError('network', `${path}: the server's answer has no choices, but ${found || 'nothing'}`, {
    url: baseURL,
  });
}

/** An answer or chunk as ours are: with what servers leave out, and without what is theirs under a name of ours. */
function ownShape(head: object, answer: RawAnswer): RawAnswer {
  const { timings: _, cache: __, choices, ...others } = answer;
  const shape = (choice: unknown): unknown => {
    if (!isObject(choice)) return choice;
    const { delta, message } = choice;
    const said = isObject(delta) && delta.content === null ? { delta: { ...delta, content: '' } } : {};
    const whole = isObject(message) ? { message: { refusal: null, ...message } } : {};
    return { logprobs: null, finish_reason: null, ...choice, ...said, ...whole };
  };
  return { ...head, ...others, choices: Array.isArray(choices) ? choices.map(shape) : [], computed_on: 'remote' };
}

function routed<Chunk extends object>(
  { chunks, cancel }: { chunks: AsyncIterable<Chunk>; cancel: () => void },
  place: Place,
  shape: (chunk: Chunk) => object,
): RoutedStream<object> {
  let isUsed = false;
  async function* read(): AsyncGenerator<object, undefined> {
    for await (const chunk of chunks) yield shape(chunk);
    return undefined;
  }
  return {
    computed_on: place,
    cancel,
    [Symbol.asyncIterator]() {
      if (isUsed) throw bad('this stream was read already: a stream can be read only once');
      isUsed = true;
      return read();
    },
  };
}

function checkPolicy(policy: unknown): asserts policy is Policy {
  if (typeof policy === 'function' || ['local', 'remote', 'prefer-local'].includes(policy as string)) return;
  throw bad(`policy: local, remote, prefer-local or a function is needed, ${show(policy)} given`);
}

function checkRemote(given: unknown): RemoteOptions {
  const kinds = { baseURL: 'any', model: 'any', apiKey: 'any', headers: 'any' } as const;
  const { baseURL, model, apiKey, headers = {} } = checkOptions('remote', given as RemoteOptions, kinds);
  if (typeof baseURL !== 'string' && !(baseURL instanceof URL))
    throw bad(`remote.baseURL: an address is needed, ${show(baseURL)} given`);
  try {
    new URL(baseURL, globalThis.location?.href);
  } catch {
    throw bad(`remote.baseURL: ${show(String(baseURL))} is not a valid address`);
  }
  for (const [name, value] of Object.entries({ model, apiKey })) {
    if (value !== undefined && typeof value !== 'string')
      throw bad(`remote.${name}: a text is needed, ${show(value)} given`);
  }
  return { baseURL, headers, ...(model === undefined ? {} : { model }), ...(apiKey === undefined ? {} : { apiKey }) };
}
