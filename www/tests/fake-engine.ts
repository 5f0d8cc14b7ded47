/**
 * A scripted stand-in for the `pagewise` package: same types, no GPU. Vite puts it in the package's place in the modes
 * `test` and `fake`; it is never part of the built page.
 *
 * What happens is chosen by the model's address or id: one that contains an error code fails with it.
 */
import { ConversationBudget } from '../../js/src/budget';
import { ERROR_CODES, type ErrorCode, PagewiseError } from '../../js/src/errors';
import type {
  CacheMiss,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatCompletionCreateParamsStreaming,
  ChatRequestMessage,
  Completion,
  CompletionCreateParamsNonStreaming,
  EngineInfo,
  LoadOptions,
  ModelSource,
  RequestOptions,
  StepTrace,
} from '../../js/src/types';
import { FakeCache, fakeDetokenize, fakeTemplate, fakeTokenize } from './fake-cache';

export * from '../../js/src/errors';
export type * from '../../js/src/types';
export * from './fake-tools';
export { ConversationBudget };

/** Knobs of the fake, settable by a test or, in the browser, as `window.fakeEngine`. */
export interface FakeOptions {
  /** Pause between load reports and between tokens. */
  delayMs: number;
  /** What every answer says. */
  answer: string;
  /** Stops the load at this share of its bytes until it is cancelled; null runs through. */
  holdLoadAt: number | null;
  /** Fails with this while answering, after some words. */
  failCode: ErrorCode | null;
  /** Stops answering after this many words until it is cancelled; null runs through. */
  holdAnswerAt: number | null;
  /** Stops computing the prompt half way until it is cancelled. */
  holdPrompt: boolean;
  /** Tokens of every prompt; null counts its words. */
  promptTokens: number | null;
  /** Tokens of a context without a setting. */
  contextLength: number;
}

export const fakeOptions: FakeOptions = {
  delayMs: 0,
  answer: 'Light bends as it enters a drop of water.',
  holdLoadAt: null,
  failCode: null,
  holdAnswerAt: null,
  holdPrompt: false,
  promptTokens: null,
  contextLength: 8192,
};

/** The requests made, newest last. */
export const fakeRequests: ChatCompletionCreateParamsStreaming[] = [];
/** The loads asked for, newest last. */
export const fakeLoads: { source: ModelSource; options: LoadOptions }[] = [];

declare global {
  interface Window {
    fakeEngine?: Partial<FakeOptions>;
  }
}
if (typeof window !== 'undefined') Object.assign(fakeOptions, window.fakeEngine);

const TOTAL_BYTES = 98_362_432;

const MESSAGES: Readonly<Record<string, string>> = {
  out_of_memory:
    'the model needs 9.8 GB of GPU memory (weights 7.7 GB, KV cache 1.6 GB, scratch 0.5 GB); this device allows 4.3 GB',
  unsupported_model: 'architecture "mamba" is not supported; supported are: llama, gemma3',
  corrupt_model: 'not a GGUF file: it begins with 50 4b 03 04, a GGUF file with 47 47 55 46',
  network: 'https://example.com/model.gguf answered 404 Not Found',
  device_lost: 'the GPU device was lost: driver reset',
  no_webgpu: 'navigator.gpu is missing in the worker',
};

/** Models that are stored, by address or id. */
export const fakeStored = new Set<string>();

export class Engine {
  static readonly models = {
    list: () =>
      Promise.resolve(
        [...fakeStored].map((id) => ({
          urls: [id],
          id,
          name: id,
          storedBytes: TOTAL_BYTES,
          totalBytes: TOTAL_BYTES,
          isComplete: true,
        })),
      ),
    has: (source: ModelSource) => Promise.resolve(fakeStored.has(sourceName(source))),
    delete: (source: ModelSource) => Promise.resolve(fakeStored.delete(sourceName(source))),
  };

  readonly chat = { completions: { create: this.create.bind(this) } };
  readonly cache: FakeCache & { explain: Engine['explain'] };
  /** Texts of prompts and answers that were computed. */
  private readonly computed: string[] = [];

  readonly completions = { create: this.complete.bind(this) };

  private constructor(readonly info: EngineInfo) {
    this.cache = Object.assign(new FakeCache(Math.ceil(info.contextLength / 16)), { explain: this.explain.bind(this) });
  }

  applyTemplate = (messages: readonly ChatRequestMessage[]): Promise<string> => Promise.resolve(fakeTemplate(messages));
  /** A token for each word. */
  tokenize = (text: string): Promise<number[]> => Promise.resolve(fakeTokenize(text));
  detokenize = (ids: readonly number[]): Promise<string> => Promise.resolve(fakeDetokenize(ids));

  onStep(callback: (step: StepTrace) => void): () => void {
    this.cache.steps.add(callback);
    return () => void this.cache.steps.delete(callback);
  }

  static async load(source: ModelSource, options: LoadOptions = {}): Promise<Engine> {
    fakeLoads.push({ source, options });
    const name = sourceName(source);
    const code = ERROR_CODES.find((known) => name.includes(known));
    options.onProgress?.({ phase: 'header', loadedBytes: 0, totalBytes: 0 });
    await pause(options.signal);
    if (code) throw fakeError(code);
    for (let share = 0; share <= 1; share += 0.02) {
      options.onProgress?.({ phase: 'weights', loadedBytes: Math.round(TOTAL_BYTES * share), totalBytes: TOTAL_BYTES });
      if (fakeOptions.holdLoadAt !== null && share >= fakeOptions.holdLoadAt) await forever(options.signal);
      await pause(options.signal);
    }
    options.onProgress?.({ phase: 'compile', loadedBytes: TOTAL_BYTES, totalBytes: TOTAL_BYTES });
    await pause(options.signal);
    if (options.store) fakeStored.add(name);
    return new Engine(fakeInfo(name, options));
  }

  unload(): Promise<void> {
    return Promise.resolve();
  }

  private explain(request: ChatCompletionCreateParams) {
    const { prompt, cached, miss } = this.lookUp(request.messages);
    if (prompt > this.info.contextLength) return Promise.reject(tooLong(prompt, this.info.contextLength));
    return Promise.resolve({ prompt_tokens: prompt, cached_tokens: cached, miss, doctor: null });
  }

  /** What the cache has of some messages: the longest beginning, in words, that something computed has too. */
  private lookUp(messages: readonly ChatRequestMessage[]): { prompt: number; cached: number; miss: CacheMiss | null } {
    const wanted = words(fakeTemplate(messages));
    const prompt = fakeOptions.promptTokens ?? wanted.length;
    const shared = this.computed.map((text) => {
      const has = words(text);
      const end = wanted.findIndex((word, index) => has[index] !== word);
      return end < 0 ? wanted.length : end;
    });
    const cached = Math.min(Math.max(0, prompt - 1), Math.max(0, ...shared));
    const reason = this.computed.length === 0 ? 'cold' : 'differs';
    const miss = cached < prompt - 1 ? ({ position: cached, reason, expected: null, found: null } as const) : null;
    return { prompt, cached, miss };
  }

  /** A text: its time between tokens rises with the context and, a little, with the number of answers. */
  private async complete(
    params: CompletionCreateParamsNonStreaming,
    { signal }: RequestOptions = {},
  ): Promise<Partial<Completion>> {
    await pause(signal);
    const tpot_ms = 1.1 + 0.0004 * params.prompt.length + 0.12 * ((params.n ?? 1) - 1);
    const timings = { queue_ms: 0, ttft_ms: 9, tpot_ms, prefill_tokens_per_s: 3200, decode_tokens_per_s: 900 };
    return { id: 'cmpl-1', timings };
  }

  private create(
    params: ChatCompletionCreateParamsStreaming,
    options?: RequestOptions,
  ): Promise<AsyncIterable<ChatCompletionChunk>>;
  private create(params: ChatCompletionCreateParams, options?: RequestOptions): Promise<ChatCompletion>;
  private async create(
    params: ChatCompletionCreateParams,
    { signal }: RequestOptions = {},
  ): Promise<AsyncIterable<ChatCompletionChunk> | ChatCompletion> {
    // What steers the cache comes from a lab; the chat leaves it alone.
    if (!params.stream && params.cache) {
      // As long as the same answer takes that is streamed.
      const said = fakeOptions.answer.split(' ').slice(0, params.max_tokens ?? 1);
      for (const _ of said) await pause(signal);
      return this.cache.answer({ ...params, stream: false }, fakeOptions.answer);
    }
    fakeRequests.push(params as ChatCompletionCreateParamsStreaming);
    const asked = this.lookUp(params.messages).prompt + (params.max_tokens ?? 1);
    if (asked > this.info.contextLength) throw tooLong(asked, this.info.contextLength);
    const stream = this.stream(params, signal);
    if (params.stream) return stream;
    let content = '';
    for await (const chunk of stream) content += chunk.choices[0]?.delta.content ?? '';
    return {
      choices: [{ index: 0, message: { role: 'assistant', content, refusal: null } }],
    } as unknown as ChatCompletion;
  }

  private async *stream(
    params: ChatCompletionCreateParams,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ChatCompletionChunk> {
    const found = this.lookUp(params.messages);
    const promptTokens = found.prompt;
    const said = fakeOptions.answer.match(/\S+\s*|\s+/g) ?? [];
    const room = this.info.contextLength - promptTokens;
    const numWords = Math.min(said.length, params.max_tokens ?? room);
    if (params.stream_options?.include_progress) {
      for (const computed of new Set([found.cached + Math.ceil((promptTokens - found.cached) / 2), promptTokens])) {
        const progress = { state: 'prefill', total: promptTokens, cached: found.cached, computed } as const;
        yield { ...this.chunk({}), choices: [], progress };
        if (fakeOptions.holdPrompt) await forever(signal);
      }
    }
    await pause(signal);
    for (const [index, word] of said.slice(0, numWords).entries()) {
      if (fakeOptions.holdAnswerAt === index) await forever(signal);
      if (fakeOptions.failCode && index === 4) throw fakeError(fakeOptions.failCode);
      yield this.chunk({ delta: { content: word } });
      await pause(signal);
    }
    const content = said.slice(0, numWords).join('');
    this.computed.push(fakeTemplate([...params.messages, { role: 'assistant', content }]));
    yield this.chunk({ finish_reason: numWords < said.length ? 'length' : 'stop' });
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: numWords,
      total_tokens: promptTokens + numWords,
      prompt_tokens_details: { cached_tokens: found.cached },
    };
    const cache = {
      read_tokens: found.cached,
      written_tokens: promptTokens - found.cached + numWords,
      miss: found.miss,
    };
    const timings = { queue_ms: 1, ttft_ms: 182, tpot_ms: 23.4, prefill_tokens_per_s: 131, decode_tokens_per_s: 42.7 };
    yield { ...this.chunk({}), choices: [], usage, timings, cache };
  }

  private chunk(choice: Partial<ChatCompletionChunk['choices'][number]>): ChatCompletionChunk {
    return {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 0,
      model: this.info.id,
      choices: [{ index: 0, delta: {}, finish_reason: null, logprobs: null, ...choice }],
    };
  }
}

function fakeInfo(name: string, options: LoadOptions): EngineInfo {
  return {
    id: name,
    name: name === 'smollm2-135m-instruct' ? 'SmolLM2 135M Instruct' : name,
    architecture: 'llama',
    quantisation: 'Q4_1',
    numParameters: 134_515_008,
    contextLength: options.contextLength ?? fakeOptions.contextLength,
    trainedContextLength: 8192,
    vocabSize: 49_152,
    kv: options.kv ?? 'f16',
    gpuBytes: 318_000_000,
    memory: {
      weightsBytes: 94_000_000,
      stepWeightsBytes: 94_000_000,
      kvBytesPerToken: 23_040,
      kvBytes: 23_040 * (options.contextLength ?? 8192),
      scratchBytes: 35_000_000,
      totalBytes: 318_000_000,
      contextLength: options.contextLength ?? 8192,
      trainedContextLength: 8192,
      kv: options.kv ?? 'f16',
    },
    hasChatTemplate: true,
    tuning: { source: 'table', fewRows: '', manyRows: '', tuneMs: 0 },
    adapter: {
      vendor: 'nvidia',
      architecture: 'ada',
      description: 'NVIDIA GeForce RTX 4070',
      isSoftware: false,
      features: ['subgroups'],
    },
  };
}

function words(text: string): string[] {
  return text.match(/\S+/g) ?? [];
}

function tooLong(asked: number, allowed: number): PagewiseError {
  return new PagewiseError('context_too_long', `context too long: ${asked} tokens asked, ${allowed} allowed`);
}

function fakeError(code: ErrorCode): PagewiseError {
  return new PagewiseError(code, MESSAGES[code] ?? code);
}

function sourceName(source: ModelSource): string {
  const first = Array.isArray(source) ? source[0] : source;
  if (first instanceof File) return first.name;
  return String(first);
}

function pause(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new PagewiseError('cancelled', 'cancelled'));
    setTimeout(resolve, fakeOptions.delayMs);
    signal?.addEventListener('abort', () => reject(new PagewiseError('cancelled', 'cancelled')), { once: true });
  });
}

function forever(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new PagewiseError('cancelled', 'cancelled')), { once: true });
  });
}
