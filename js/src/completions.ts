/**
 * `engine.completions`: OpenAI's text shapes over a generation, and what both kinds of request share.
 */

import type { WorkerClient } from './client.js';
import type { Generation, GenerationEvent } from './generation.js';
import { checkOptions, type OptionKinds } from './options.js';
import { checkTextRequest } from './request.js';
import { Stream } from './stream.js';
import type {
  Completion,
  CompletionCreateParams,
  CompletionCreateParamsNonStreaming,
  CompletionCreateParamsStreaming,
  EngineInfo,
  FinishReason,
  RequestOptions,
} from './types.js';

/** Of {@link RequestOptions}. */
export const REQUEST_OPTIONS: OptionKinds<RequestOptions> = { signal: 'signal' };

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
    const { signal } = checkOptions('create', options, REQUEST_OPTIONS);
    const { engineRequest, stream, includeUsage } = checkTextRequest(params, [this.#info.id, this.#info.name]);
    const head = {
      id: randomId('cmpl'),
      object: 'text_completion' as const,
      created: unixSeconds(),
      model: this.#info.id,
    };
    const generation = await this.#client.generate(engineRequest, signal);
    const choice = (text: string, finish_reason: FinishReason | null): Completion => ({
      ...head,
      choices: [{ index: 0, text, finish_reason, logprobs: null }],
      ...(stream && includeUsage ? { usage: null } : {}),
    });
    if (!stream) {
      const { text, reason, usage, timings, cache } = await collect(generation);
      return { ...choice(text, reason), usage, timings, cache };
    }
    return new Stream(generation, [], (event: GenerationEvent): Completion[] => {
      if (event.kind === 'text') return event.text === '' ? [] : [choice(event.text, null)];
      const { reason, usage, timings, cache } = event;
      const chunks: Completion[] = [{ ...choice('', reason), timings, cache }];
      if (includeUsage) chunks.push({ ...head, choices: [], usage, timings, cache });
      return chunks;
    });
  }
}

/** The whole answer of a generation. */
export async function collect(
  generation: Generation,
): Promise<Omit<Extract<GenerationEvent, { kind: 'finished' }>, 'kind' | 'request'> & { text: string }> {
  let text = '';
  for (;;) {
    const event = await generation.next();
    if (event.kind === 'finished') return { ...event, text };
    text += event.text;
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
