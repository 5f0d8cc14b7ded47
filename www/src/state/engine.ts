/** What the page needs from the `pagewise` package, in the page's words. The only file that imports it. */
import {
  type BudgetOptions,
  type CacheMiss,
  type ChatCompletionChunk,
  type ChatCompletionCreateParamsStreaming,
  ConversationBudget,
  type ConversationSummary,
  Engine,
  type EngineInfo,
  type LoadOptions,
  PagewiseError,
  type RequestProgress,
} from 'pagewise';
import { type ModelChoice, REGISTRY_URL, toSource } from './models';
import type { Settings } from './settings';

export type { ConversationBudget, ConversationSummary };

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface AnswerStats {
  readonly promptTokens: number;
  /** Tokens of the prompt that were known from before. */
  readonly cachedTokens: number;
  readonly answerTokens: number;
  /** Why no more of the prompt was reused, and from which token on; null if nothing more could be. */
  readonly miss: Pick<CacheMiss, 'reason' | 'position'> | null;
  /** From sending to the first words. */
  readonly ttftMs: number | null;
  /** null for an answer of one token, which has no pace. */
  readonly decodeTokensPerS: number | null;
  /** The limit that the answer ended at; null when the model was done. */
  readonly cutBy: 'max_tokens' | 'context' | null;
}

/** How far the prompt is: tokens that are there, from the cache or computed, of all. */
export interface ReadingProgress {
  readonly done: number;
  readonly total: number;
}

/** A piece of an answer: how far its prompt is, words, or in the end how it went, also when it was stopped. */
export type AnswerPart =
  | ({ readonly kind: 'reading' } & ReadingProgress)
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'stats'; readonly stats: AnswerStats };

export type LoadPhase = 'download' | 'header' | 'weights' | 'compile' | 'ready';

export interface LoadReport {
  readonly phase: LoadPhase;
  readonly loadedBytes: number;
  /** null while the size is not known yet. */
  readonly totalBytes: number | null;
}

/** How requests are scheduled; labs change it for a load of their own. */
export type Scheduling = Pick<LoadOptions, 'maxRunning' | 'batching' | 'chunkedPrefill' | 'maxStepTokens'>;

export interface LoadRequest extends Pick<Settings, 'contextLength' | 'kvFormat' | 'storeModels'> {
  readonly scheduling?: Scheduling;
  readonly signal: AbortSignal;
  readonly onProgress: (report: LoadReport) => void;
}

/** A model in GPU memory. */
export interface LoadedModel {
  readonly info: EngineInfo;
  /** The whole API, for the labs. */
  readonly engine: Engine;
  /** Streams the answer to `messages`. Leaving the loop or aborting `signal` cancels it. */
  answer(messages: readonly ChatMessage[], settings: Settings, signal: AbortSignal): AsyncIterable<AnswerPart>;
  /** A short answer at once, always the likeliest words: for summaries. */
  complete(messages: readonly ChatMessage[], signal: AbortSignal): Promise<string>;
  /** Tokens of what would be sent, and how many of them the cache has now. Computes nothing. */
  count(messages: readonly ChatMessage[]): Promise<{ promptTokens: number; cachedTokens: number }>;
  /** A budget that counts this model's tokens. */
  createBudget(options: Omit<BudgetOptions, 'countTokens'>): ConversationBudget;
  /** Frees the GPU memory. */
  unload(): Promise<void>;
}

/** Loads a model; rejects with the engine's error. */
export async function loadModel(choice: ModelChoice, request: LoadRequest): Promise<LoadedModel> {
  const options: LoadOptions = {
    ...request.scheduling,
    signal: request.signal,
    registry: new URL(REGISTRY_URL, document.baseURI),
    kv: request.kvFormat,
    // Files are read where they are; what comes from a server is kept if the visitor lets it.
    store: request.storeModels && choice.kind !== 'files',
    onProgress: ({ phase, loadedBytes, totalBytes }) =>
      request.onProgress({ phase, loadedBytes, totalBytes: totalBytes > 0 ? totalBytes : null }),
  };
  if (request.contextLength !== null) options.contextLength = request.contextLength;
  const engine = await Engine.load(toSource(choice), options);
  return {
    info: engine.info,
    engine,
    answer: (messages, settings, signal) => streamAnswer(engine, messages, settings, signal),
    complete: (messages, signal) => complete(engine, messages, signal),
    count: (messages) => count(engine, messages),
    createBudget: (budget) => new ConversationBudget({ ...budget, countTokens: (all) => countTokens(engine, all) }),
    unload: () => Promise.resolve(engine.unload()),
  };
}

async function count(
  engine: Engine,
  messages: readonly ChatMessage[],
): Promise<{ promptTokens: number; cachedTokens: number }> {
  try {
    const { prompt_tokens, cached_tokens } = await engine.cache.explain({ messages: [...messages] });
    return { promptTokens: prompt_tokens, cachedTokens: cached_tokens };
  } catch (error) {
    // A prompt that does not fit has no place in the cache, but a length.
    if (!(error instanceof PagewiseError) || error.code !== 'context_too_long') throw error;
    return { promptTokens: await countTokens(engine, messages), cachedTokens: 0 };
  }
}

/** Tokens of messages as the template writes them. */
async function countTokens(engine: Engine, messages: Parameters<Engine['applyTemplate']>[0]): Promise<number> {
  const text = await engine.applyTemplate(messages);
  return (await engine.tokenize(text, { parseSpecial: true })).length;
}

const SUMMARY_TOKENS = 120;

async function complete(engine: Engine, messages: readonly ChatMessage[], signal: AbortSignal): Promise<string> {
  const { choices } = await engine.chat.completions.create(
    { messages: [...messages], temperature: 0, max_tokens: SUMMARY_TOKENS },
    { signal },
  );
  return choices[0]?.message.content?.trim() ?? '';
}

/** Models that are kept on this device. */
export async function storedModels(): Promise<{ id: string; name: string; bytes: number }[]> {
  const models = await Engine.models.list();
  return models.map(({ id, name, urls, storedBytes }) => ({ id: urls[0] ?? id, name, bytes: storedBytes }));
}

/** Whether all of a known model is on this device. */
export function isStored(id: string): Promise<boolean> {
  return Engine.models.has(id, { registry: new URL(REGISTRY_URL, document.baseURI) });
}

/** Removes a stored model, by the id that `storedModels` gave it. */
export async function deleteStoredModel(id: string): Promise<void> {
  await Engine.models.delete(id);
}

async function* streamAnswer(
  engine: Engine,
  messages: readonly ChatMessage[],
  settings: Settings,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart> {
  const seen = new Seen();
  const stream = await startAnswer(engine, toRequest(messages, settings), signal);
  try {
    for await (const chunk of stream) {
      seen.take(chunk);
      yield* partsOf(chunk, settings, seen);
    }
  } catch (error) {
    const stats = signal.aborted ? seen.stats() : null;
    if (stats) yield { kind: 'stats', stats };
    throw error;
  }
}

/** What the page itself saw of an answer: an answer that is stopped brings no figures of its own. */
class Seen {
  isCut = false;
  private readonly startMs = performance.now();
  private prompt: Extract<RequestProgress, { state: 'prefill' }> | null = null;
  private ttftMs: number | null = null;
  private answerTokens = 0;

  take({ progress, choices: [choice] }: ChatCompletionChunk): void {
    if (progress?.state === 'prefill') this.prompt = progress;
    if (choice?.finish_reason === 'length') this.isCut = true;
    if (!choice?.delta.content) return;
    // A token that ends within a character comes with the next one; all others have a chunk each.
    this.answerTokens += 1;
    this.ttftMs ??= performance.now() - this.startMs;
  }

  /** The figures by now; null before the prompt was begun. */
  stats(): AnswerStats | null {
    if (!this.prompt) return null;
    const { answerTokens, ttftMs } = this;
    const { computed: promptTokens, cached: cachedTokens } = this.prompt;
    return { promptTokens, cachedTokens, answerTokens, ttftMs, miss: null, decodeTokensPerS: null, cutBy: null };
  }
}

function* partsOf(chunk: ChatCompletionChunk, settings: Settings, { isCut }: Seen): Generator<AnswerPart> {
  const { progress } = chunk;
  if (progress?.state === 'prefill') yield { kind: 'reading', done: progress.computed, total: progress.total };
  const choice = chunk.choices[0];
  if (choice?.delta.content) yield { kind: 'text', text: choice.delta.content };
  if (!chunk.usage) return;
  const timings = chunk.timings;
  const answerTokens = chunk.usage.completion_tokens;
  const limit = answerTokens < settings.maxTokens ? 'context' : 'max_tokens';
  yield {
    kind: 'stats',
    stats: {
      promptTokens: chunk.usage.prompt_tokens,
      cachedTokens: chunk.usage.prompt_tokens_details.cached_tokens,
      answerTokens,
      miss: chunk.cache?.miss ? { reason: chunk.cache.miss.reason, position: chunk.cache.miss.position } : null,
      ttftMs: timings?.ttft_ms ?? null,
      decodeTokensPerS: timings?.decode_tokens_per_s || null,
      cutBy: isCut ? limit : null,
    },
  };
}

/**
 * Max tokens is the most the visitor wants, not what must be free: where the context leaves less, the answer may fill it.
 * The engine refuses a request whose prompt and `max_tokens` do not fit together. Then what is left is less than
 * `max_tokens`, so that a request without it, which ends when the context is full, has the right limit; and only the
 * engine knows the prompt's tokens exactly. It refuses that request too where the prompt alone does not fit.
 */
async function startAnswer(
  engine: Engine,
  request: ChatCompletionCreateParamsStreaming,
  signal: AbortSignal,
): Promise<AsyncIterable<ChatCompletionChunk>> {
  const { completions } = engine.chat;
  try {
    return await completions.create(request, { signal });
  } catch (error) {
    if (!(error instanceof PagewiseError) || error.code !== 'context_too_long') throw error;
    const { max_tokens: _, ...unlimited } = request;
    return await completions.create(unlimited, { signal });
  }
}

function toRequest(messages: readonly ChatMessage[], settings: Settings): ChatCompletionCreateParamsStreaming {
  return {
    messages,
    stream: true,
    stream_options: { include_usage: true, include_progress: true },
    priority: 'interactive',
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    repetition_penalty: settings.repetitionPenalty,
    max_tokens: settings.maxTokens,
    seed: settings.seed,
  };
}
