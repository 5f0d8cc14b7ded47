/**
 * `engine.completions`: OpenAI's text shapes over a generation, and what both kinds of request share.
 */

import { collect, combine } from './choices.js';
import type { WorkerClient } from './client.js';
import { cancelledError } from './errors.js';
import type { Generation, GenerationEvent } from './generation.js';
import { CompletionLogprobList } from './logprobs.js';
import { checkOptions, type OptionKinds } from './options.js';
import type { EngineRequest, FinishedEvent } from './protocol.js';
import { checkTextRequest } from './request.js';
import { Stream } from './stream.js';
import type {
  Completion,
  CompletionChoice,
  CompletionCreateParams,
  CompletionCreateParamsNonStreaming,
  CompletionCreateParamsStreaming,
  CompletionLogprobs,
  EngineInfo,
  FinishReason,
  RequestOptions,
} from './types.js';

export { collect };

/** Of {@link RequestOptions}. */
export const REQUEST_OPTIONS: OptionKinds<RequestOptions> = { signal: 'signal', onQueued: 'function' };

/** Requests to continue a text. */
export class Completions {
  readonly #client: WorkerClient;
  readonly #info: EngineInfo;

  /** @internal */
  constructor(client: WorkerClient, info: EngineInfo) {
    this.#client = client;
    this.#info = info;
  }

  /**
   * Continues a text, as a {@link Stream} of chunks with `stream: true`, else at once. The text is tokenised with the
   * model's BOS token where the file asks for one, and the text of special tokens is turned into them.
   *
   * Rejects as {@link ChatCompletions.create} does.
   */
  create(params: CompletionCreateParamsStreaming, options?: RequestOptions): Promise<Stream<Completion>>;
  create(params: CompletionCreateParamsNonStreaming, options?: RequestOptions): Promise<Completion>;
  create(params: CompletionCreateParams, options?: RequestOptions): Promise<Completion | Stream<Completion>>;
  async create(params: CompletionCreateParams, options?: RequestOptions): Promise<Completion | Stream<Completion>> {
    const { signal, onQueued } = checkOptions('create', options, REQUEST_OPTIONS);
    const { engineRequest, stream, includeUsage } = checkTextRequest(params, [this.#info.id, this.#info.name]);
    const head = {
      id: randomId('cmpl'),
      object: 'text_completion' as const,
      created: unixSeconds(),
      model: this.#info.id,
    };
    const generation = await this.#client.generate(engineRequest, signal, head.id);
    tellQueued(generation, onQueued);
    if (stream) {
      const shape = new ChunkShape(head, engineRequest, includeUsage);
      return new Stream(generation, [], (event) => shape.chunksOf(event));
    }
    const { choices, ...totals } = await collect(generation);
    const choice = ({ text, reason, logprobs }: (typeof choices)[number], index: number): CompletionChoice => {
      const list = new CompletionLogprobList(engineRequest.logprobs);
      return { index, text, finish_reason: reason, logprobs: list.next(logprobs) };
    };
    return { ...head, choices: choices.map(choice), ...totals };
  }
}

/** Makes chunks of events. */
class ChunkShape {
  readonly #head: Omit<Completion, 'choices'>;
  readonly #numChoices: number;
  readonly #includeUsage: boolean;
  readonly #finishes: FinishedEvent[] = [];
  /** By choice. */
  readonly #logprobs: CompletionLogprobList[];

  constructor(head: Omit<Completion, 'choices'>, { numChoices, logprobs }: EngineRequest, includeUsage: boolean) {
    this.#head = head;
    this.#numChoices = numChoices;
    this.#includeUsage = includeUsage;
    this.#logprobs = Array.from({ length: numChoices }, () => new CompletionLogprobList(logprobs));
  }

  chunksOf(event: GenerationEvent): Completion[] {
    if (event.kind === 'progress') return [{ ...this.#chunk(), progress: event.progress }];
    if (event.kind === 'text') {
      const { text, logprobs } = event;
      if (text === '' && logprobs === undefined) return [];
      return [this.#chunk(event.choice, text, null, this.#logprobs[event.choice]?.next(logprobs) ?? null)];
    }
    // A text request has no tools.
    if (event.kind !== 'finished') return [];
    const { choice, reason, timings, cache } = event;
    const chunks = [{ ...this.#chunk(choice, '', reason), timings, cache }];
    if (this.#finishes.push(event) === this.#numChoices && this.#includeUsage) {
      chunks.push({ ...this.#chunk(), ...combine(this.#finishes) });
    }
    return chunks;
  }

  #chunk(
    index?: number,
    text = '',
    finish_reason: FinishReason | null = null,
    logprobs: CompletionLogprobs | null = null,
  ): Completion {
    const choices = index === undefined ? [] : [{ index, text, finish_reason, logprobs }];
    return { ...this.#head, choices, ...(this.#includeUsage ? { usage: null } : {}) };
  }
}

/** Tells the caller that a request is queued; a callback that throws ends it, as nobody will read its answer. */
export function tellQueued(generation: Generation, onQueued: (() => void) | undefined): void {
  try {
    onQueued?.();
  } catch (error) {
    generation.fail(cancelledError(), false);
    throw error;
  }
}

/** `prefix-` and 24 random letters and digits. */
export function randomId(prefix: string): string {
  const letters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  return `${prefix}-${Array.from(bytes, (byte) => letters[byte % letters.length]).join('')}`;
}

/** Now, as OpenAI's `created`. */
export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
