/**
 * `engine.embeddings`: OpenAI's embeddings, made of a decoder's hidden states.
 */

import { unlessAborted } from './abort.js';
import type { WorkerClient } from './client.js';
import { REQUEST_OPTIONS } from './completions.js';
import { checkEmbeddingRequest } from './embedding-request.js';
import type { CreateEmbeddingResponse, EmbeddingCreateParams, EmbeddingCreateParamsFloat } from './embedding-types.js';
import { cancelledError, PagewiseError } from './errors.js';
import { checkOptions } from './options.js';
import type { EngineRequest } from './protocol.js';
import { afterMs } from './schedule-request.js';
import type { EngineInfo, RequestOptions } from './types.js';

/** Texts of a request that are with the engine at once, where its queue has room: it works on as many, and others wait no longer. */
const MAX_AT_ONCE = 8;
/** Until a full queue is tried again, where the engine cannot tell. */
const RETRY_MS = 100;

/** Requests to embed texts. */
export class Embeddings {
  readonly #client: WorkerClient;
  readonly #info: EngineInfo;

  /** @internal */
  constructor(client: WorkerClient, info: EngineInfo) {
    this.#client = client;
    this.#info = info;
  }

  /**
   * Embeds texts: of each, the mean of its tokens' last hidden states, scaled to length 1. A model that was trained to
   * answer gives embeddings of middling quality; what is alike is near all the same.
   *
   * A request of many texts takes no more of the engine's queue than there is room for, and waits for its own texts.
   *
   * Rejects with a {@link PagewiseError}: `queue_full` where there is room for none; `bad_request` names the field, `context_too_long` where a text does not fit,
   * `unsupported_model` where the file asks for another pooling, and as {@link ChatCompletions.create} does.
   */
  create(params: EmbeddingCreateParamsFloat, options?: RequestOptions): Promise<CreateEmbeddingResponse<number[]>>;
  create(params: EmbeddingCreateParams, options?: RequestOptions): Promise<CreateEmbeddingResponse>;
  async create(params: EmbeddingCreateParams, options?: RequestOptions): Promise<CreateEmbeddingResponse> {
    const { signal, onQueued } = checkOptions('create', options, REQUEST_OPTIONS);
    const { requests, isBase64 } = checkEmbeddingRequest(params, [this.#info.id, this.#info.name]);
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort);
    if (signal?.aborted === true) onAbort();
    const start = performance.now();
    const data: CreateEmbeddingResponse['data'] = [];
    let promptTokens = 0;
    const embed = async (index: number): Promise<void> => {
      // What a caller allows is for all texts together.
      const request = afterMs(requests[index] as EngineRequest, performance.now() - start);
      const { values, numTokens } = await this.#embed(request, controller.signal, onQueued);
      data[index] = { object: 'embedding', index, embedding: isBase64 ? base64(values) : values };
      promptTokens += numTokens;
    };
    try {
      await inLanes(requests.length, controller.signal, embed);
    } catch (error) {
      // The others are computed for nothing.
      controller.abort();
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
    const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
    return { object: 'list', data, model: this.#info.id, usage };
  }

  async #embed(
    request: EngineRequest,
    signal: AbortSignal,
    onQueued: (() => void) | undefined,
  ): Promise<{ values: number[]; numTokens: number }> {
    const generation = await this.#client.generate(request, signal);
    onQueued?.();
    for (;;) {
      const event = await generation.next();
      if (event.kind !== 'finished') continue;
      if (event.embedding === undefined) throw new PagewiseError('wrong_result', 'the engine gave no embedding');
      return { values: event.embedding, numTokens: event.usage.prompt_tokens };
    }
  }
}

/**
 * Runs jobs by number, several at once: fewer where the queue has no room for more. If there is none for the first one, that is
 * the answer; later on, when others were faster, it is waited for.
 */
async function inLanes(numJobs: number, signal: AbortSignal, run: (index: number) => Promise<void>): Promise<void> {
  const waiting = Array.from({ length: numJobs }, (_, index) => index);
  let numLanes = Math.min(MAX_AT_ONCE, numJobs);
  let numDone = 0;
  const lane = async (): Promise<void> => {
    for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
      try {
        await run(index);
        numDone += 1;
      } catch (error) {
        const isFull = error instanceof PagewiseError && error.code === 'queue_full';
        if (!isFull || (numLanes === 1 && numDone === 0)) throw error;
        waiting.unshift(index);
        // The other lanes' jobs are in the queue, or are about to be refused as well: one of those lanes takes it.
        if (numLanes > 1) break;
        const ms = error.retryAfterMs ?? RETRY_MS;
        await unlessAborted(new Promise((resolve) => setTimeout(resolve, ms)), signal).catch(() => {
          throw cancelledError(signal);
        });
      }
    }
    numLanes -= 1;
  };
  await Promise.all(Array.from({ length: numLanes }, lane));
}

/** Numbers as the bytes of little-endian f32, in base64. */
function base64(values: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  for (const [index, value] of values.entries()) view.setFloat32(4 * index, value, true);
  // In pieces: a call takes only so many arguments.
  const bytes = new Uint8Array(view.buffer);
  let binary = '';
  for (let start = 0; start < bytes.length; start += 4096) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 4096));
  }
  return btoa(binary);
}
