/**
 * `engine.chat.completions`: OpenAI's chat shapes over a generation.
 */

import type { WorkerClient } from './client.js';
import { collect, REQUEST_OPTIONS, randomId, unixSeconds } from './completions.js';
import type { GenerationEvent } from './generation.js';
import { checkOptions } from './options.js';
import { checkChatRequest } from './request.js';
import { Stream } from './stream.js';
import type {
  ChatChunkChoice,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionCreateParamsStreaming,
  EngineInfo,
  RequestOptions,
} from './types.js';

/** Chat requests. */
export class ChatCompletions {
  readonly #client: WorkerClient;
  readonly #info: EngineInfo;

  /** @internal */
  constructor(client: WorkerClient, info: EngineInfo) {
    this.#client = client;
    this.#info = info;
  }

  /**
   * Answers a conversation, as a {@link Stream} of chunks with `stream: true`, else at once.
   *
   * Rejects with a {@link PagewiseError}: `bad_request` names the field; `context_too_long`, `queue_full`, `cancelled`,
   * `device_lost` and so on. With `stream: true` the promise resolves when the request is queued.
   */
  create(params: ChatCompletionCreateParamsStreaming, options?: RequestOptions): Promise<Stream<ChatCompletionChunk>>;
  create(params: ChatCompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<ChatCompletion>;
  create(
    params: ChatCompletionCreateParams,
    options?: RequestOptions,
  ): Promise<ChatCompletion | Stream<ChatCompletionChunk>>;
  async create(
    params: ChatCompletionCreateParams,
    options?: RequestOptions,
  ): Promise<ChatCompletion | Stream<ChatCompletionChunk>> {
    const { signal } = checkOptions('create', options, REQUEST_OPTIONS);
    const { engineRequest, stream, includeUsage } = checkChatRequest(params, [this.#info.id, this.#info.name]);
    const head = { id: randomId('chatcmpl'), created: unixSeconds(), model: this.#info.id };
    const generation = await this.#client.generate(engineRequest, signal);
    if (stream) {
      const shape = new ChunkShape(head, includeUsage);
      return new Stream(generation, [shape.first()], (event) => shape.chunksOf(event));
    }
    const { text, reason, usage, timings, cache } = await collect(generation);
    const message = { role: 'assistant' as const, content: text, refusal: null };
    return {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: reason, logprobs: null }],
      usage,
      timings,
      cache,
    };
  }
}

/** Makes chunks of events. */
class ChunkShape {
  readonly #head: { id: string; created: number; model: string };
  readonly #includeUsage: boolean;

  constructor(head: { id: string; created: number; model: string }, includeUsage: boolean) {
    this.#head = head;
    this.#includeUsage = includeUsage;
  }

  first(): ChatCompletionChunk {
    return this.#chunk({ role: 'assistant', content: '' }, null);
  }

  chunksOf(event: GenerationEvent): ChatCompletionChunk[] {
    if (event.kind === 'text') return event.text === '' ? [] : [this.#chunk({ content: event.text }, null)];
    const { reason, usage, timings, cache } = event;
    const chunks: ChatCompletionChunk[] = [{ ...this.#chunk({}, reason), timings, cache }];
    if (this.#includeUsage) {
      chunks.push({ ...this.#head, object: 'chat.completion.chunk', choices: [], usage, timings, cache });
    }
    return chunks;
  }

  #chunk(delta: ChatChunkChoice['delta'], finish_reason: ChatChunkChoice['finish_reason']): ChatCompletionChunk {
    const chunk: ChatCompletionChunk = {
      ...this.#head,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason, logprobs: null }],
    };
    if (this.#includeUsage) chunk.usage = null;
    return chunk;
  }
}
