/**
 * `engine.chat.completions`: OpenAI's chat shapes over a generation.
 */

import { type AnswerChoice, collect, combine } from './choices.js';
import type { WorkerClient } from './client.js';
import { REQUEST_OPTIONS, randomId, tellQueued, unixSeconds } from './completions.js';
import type { GenerationEvent } from './generation.js';
import { chatLogprobs } from './logprobs.js';
import { checkOptions } from './options.js';
import type { FinishedEvent } from './protocol.js';
import { checkChatRequest } from './request.js';
import { Stream } from './stream.js';
import type {
  ChatAnswerMessage,
  ChatChoice,
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
   * Rejects with a {@link PagewiseError}: `bad_request` names the field; `context_too_long`, `queue_full`,
   * `deadline_exceeded`, `cancelled`, `device_lost` and so on. With `stream: true` the promise resolves when the request is queued.
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
    const { signal, onQueued } = checkOptions('create', options, REQUEST_OPTIONS);
    const { engineRequest, stream, includeUsage } = checkChatRequest(params, [this.#info.id, this.#info.name]);
    const head = { id: randomId('chatcmpl'), created: unixSeconds(), model: this.#info.id };
    const generation = await this.#client.generate(engineRequest, signal, head.id);
    tellQueued(generation, onQueued);
    if (stream) {
      const shape = new ChunkShape(head, engineRequest.numChoices, includeUsage);
      return new Stream(generation, shape.first(), (event) => shape.chunksOf(event));
    }
    const { choices, ...totals } = await collect(generation);
    return { ...head, object: 'chat.completion', choices: choices.map(choiceOf), ...totals };
  }
}

function choiceOf({ text, reason, logprobs, calls, error }: AnswerChoice, index: number): ChatChoice {
  const hasCalls = calls.length > 0;
  const message: ChatAnswerMessage = {
    role: 'assistant',
    content: hasCalls && text === '' ? null : text,
    refusal: null,
    ...(hasCalls ? { tool_calls: calls } : {}),
  };
  const choice: ChatChoice = { index, message, finish_reason: reason, logprobs: chatLogprobs(logprobs) };
  return error === undefined ? choice : { ...choice, tool_call_error: error };
}

/** What all chunks of an answer have in common. */
type Head = Pick<ChatCompletionChunk, 'id' | 'created' | 'model'>;

/** Makes chunks of events. */
class ChunkShape {
  readonly #head: Head;
  readonly #numChoices: number;
  readonly #includeUsage: boolean;
  readonly #finishes: FinishedEvent[] = [];

  constructor(head: Head, numChoices: number, includeUsage: boolean) {
    this.#head = head;
    this.#numChoices = numChoices;
    this.#includeUsage = includeUsage;
  }

  first(): ChatCompletionChunk[] {
    return Array.from({ length: this.#numChoices }, (_, index) =>
      this.#chunk({ index, delta: { role: 'assistant', content: '' } }),
    );
  }

  chunksOf(event: GenerationEvent): ChatCompletionChunk[] {
    if (event.kind === 'progress') return [{ ...this.#chunk(), progress: event.progress }];
    if (event.kind !== 'finished') return this.#piece(event);
    const { choice: index, reason, timings, cache } = event;
    const chunks = [{ ...this.#chunk({ index, delta: {}, finish_reason: reason }), timings, cache }];
    if (this.#finishes.push(event) === this.#numChoices && this.#includeUsage) {
      chunks.push({ ...this.#chunk(), ...combine(this.#finishes) });
    }
    return chunks;
  }

  /** More of an answer. */
  #piece(event: Exclude<GenerationEvent, { kind: 'progress' | 'finished' }>): ChatCompletionChunk[] {
    const { choice: index } = event;
    switch (event.kind) {
      case 'text': {
        const { text, logprobs } = event;
        if (text === '' && logprobs === undefined) return [];
        // A token whose text is held back is told of at once.
        const delta = text === '' ? {} : { content: text };
        return [this.#chunk({ index, delta, logprobs: chatLogprobs(logprobs) })];
      }
      case 'call': {
        const { id, name } = event;
        const call = { index: event.index, id, type: 'function' as const, function: { name, arguments: '' } };
        return [this.#chunk({ index, delta: { tool_calls: [call] } })];
      }
      case 'arguments': {
        const call = { index: event.index, function: { arguments: event.text } };
        return [this.#chunk({ index, delta: { tool_calls: [call] } })];
      }
      case 'malformed': {
        const tool_call_error = { ...event.error, index: event.index };
        return [this.#chunk({ index, delta: { content: event.text }, tool_call_error })];
      }
    }
  }

  #chunk(choice?: Pick<ChatChunkChoice, 'index' | 'delta'> & Partial<ChatChunkChoice>): ChatCompletionChunk {
    return {
      ...this.#head,
      object: 'chat.completion.chunk',
      choices: choice === undefined ? [] : [{ finish_reason: null, logprobs: null, ...choice }],
      ...(this.#includeUsage ? { usage: null } : {}),
    };
  }
}
