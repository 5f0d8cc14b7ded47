/**
 * A scripted stand-in for the `pagewise` package: same types, no GPU. Vite puts it in the package's place in the modes
 * `test` and `fake`; it is never part of the built page.
 *
 * What happens is chosen by the model's address or id: one that contains an error code fails with it.
 */
import { ERROR_CODES, type ErrorCode, PagewiseError } from '../../js/src/errors';
import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  EngineInfo,
  LoadOptions,
  ModelSource,
  RequestOptions,
} from '../../js/src/types';

export * from '../../js/src/errors';
export type * from '../../js/src/types';

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
  /** Tokens of every prompt. */
  promptTokens: number;
}

export const fakeOptions: FakeOptions = {
  delayMs: 0,
  answer: 'Light bends as it enters a drop of water.',
  holdLoadAt: null,
  failCode: null,
  holdAnswerAt: null,
  promptTokens: 24,
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

export class Engine {
  readonly chat = { completions: { create: this.create.bind(this) } };

  private constructor(readonly info: EngineInfo) {}

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
    return new Engine(fakeInfo(name, options));
  }

  unload(): Promise<void> {
    return Promise.resolve();
  }

  private async create(
    params: ChatCompletionCreateParamsStreaming,
    { signal }: RequestOptions = {},
  ): Promise<AsyncIterable<ChatCompletionChunk>> {
    fakeRequests.push(params);
    const [asked, allowed] = [fakeOptions.promptTokens + (params.max_tokens ?? 1), this.info.contextLength];
    if (asked > allowed) {
      throw new PagewiseError('context_too_long', `context too long: ${asked} tokens asked, ${allowed} allowed`);
    }
    return this.stream(params, signal);
  }

  private async *stream(
    params: ChatCompletionCreateParamsStreaming,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ChatCompletionChunk> {
    const words = fakeOptions.answer.match(/\S+\s*|\s+/g) ?? [];
    const room = this.info.contextLength - fakeOptions.promptTokens;
    const numWords = Math.min(words.length, params.max_tokens ?? room);
    await pause(signal);
    for (const [index, word] of words.slice(0, numWords).entries()) {
      if (fakeOptions.holdAnswerAt === index) await forever(signal);
      if (fakeOptions.failCode && index === 4) throw fakeError(fakeOptions.failCode);
      yield this.chunk({ delta: { content: word } });
      await pause(signal);
    }
    yield this.chunk({ finish_reason: numWords < words.length ? 'length' : 'stop' });
    const { promptTokens } = fakeOptions;
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: numWords,
      total_tokens: promptTokens + numWords,
      prompt_tokens_details: { cached_tokens: 0 },
    };
    const timings = { queue_ms: 1, ttft_ms: 182, tpot_ms: 23.4, prefill_tokens_per_s: 131, decode_tokens_per_s: 42.7 };
    yield { ...this.chunk({}), choices: [], usage, timings };
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
    contextLength: options.contextLength ?? 8192,
    trainedContextLength: 8192,
    vocabSize: 49_152,
    kv: options.kv ?? 'f16',
    gpuBytes: 318_000_000,
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
