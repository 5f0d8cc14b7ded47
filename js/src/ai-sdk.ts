/**
 * A provider for the Vercel AI SDK (`ai` 7, specification `v4`): its `generateText`, `streamText`, `embed` and so
 * on, answered by an engine in the page, or by a router.
 *
 * ```ts
 * import { streamText } from 'ai';
 * import { createPagewise } from 'pagewise/ai-sdk';
 *
 * const pagewise = createPagewise(engine);
 * const { textStream } = streamText({ model: pagewise(), prompt: 'Hello!' });
 * for await (const text of textStream) console.log(text);
 * ```
 *
 * @module
 */

import { type EmbeddingEngine, PagewiseEmbeddingModel } from './ai-sdk-embedding.js';
import { asAbort, mapCall } from './ai-sdk-request.js';
import type {
  AiCallOptions,
  AiEmbeddingModel,
  AiFinishReason,
  AiGenerateResult,
  AiJson,
  AiLanguageModel,
  AiMetadata,
  AiStreamPart,
  AiToolCall,
  AiUsage,
} from './ai-sdk-types.js';
import { bad, show } from './fields.js';
import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsStreaming,
  EngineInfo,
  RequestOptions,
  TokenLogprob,
  Usage,
} from './types.js';

export type { EmbeddingEngine } from './ai-sdk-embedding.js';
export type * from './ai-sdk-types.js';

/** What answers: an `Engine`, or a router of `pagewise/remote`. */
export interface ChatEngine {
  /** What embeds; without it there are no embedding models. */
  readonly embeddings?: EmbeddingEngine;
  /** What answers are said to come from. */
  readonly info: Pick<EngineInfo, 'id'>;
  /** As an engine's. */
  readonly chat: {
    readonly completions: {
      create(
        params: ChatCompletionCreateParamsStreaming,
        options?: RequestOptions,
      ): Promise<AsyncIterable<ChatCompletionChunk>>;
    };
  };
}

/** A provider: call it for the model. */
export interface PagewiseProvider {
  /** The engine's model; an id has to be the engine's. */
  (modelId?: string): AiLanguageModel;
  readonly specificationVersion: 'v4';
  /** The same. */
  languageModel(modelId?: string): AiLanguageModel;
  /** The engine's model too: embeddings are the mean of its last hidden states, as `engine.embeddings` has them. */
  embeddingModel(modelId?: string): AiEmbeddingModel;
  /** There is none: throws. */
  imageModel(modelId: string): never;
}

/** The provider of an engine's model. */
export function createPagewise(engine: ChatEngine): PagewiseProvider {
  const check = (modelId: string): void => {
    if (modelId !== engine.info.id) throw bad(`model: ${show(engine.info.id)} is loaded, ${show(modelId)} asked`);
  };
  const languageModel = (modelId = engine.info.id): AiLanguageModel => {
    check(modelId);
    return new PagewiseLanguageModel(engine);
  };
  const embeddingModel = (modelId = engine.info.id): AiEmbeddingModel => {
    check(modelId);
    if (engine.embeddings === undefined) throw bad(`model: ${show(modelId)} has no embeddings here`);
    return new PagewiseEmbeddingModel(engine.embeddings, modelId);
  };
  const imageModel = (modelId: string): never => {
    throw bad(`model: ${show(modelId)} is not there: Pagewise has language and embedding models only`);
  };
  return Object.assign((modelId?: string) => languageModel(modelId), {
    specificationVersion: 'v4' as const,
    languageModel,
    embeddingModel,
    imageModel,
  });
}

/** Both ways of asking are one stream: a whole answer is its parts put together. */
class PagewiseLanguageModel implements AiLanguageModel {
  readonly specificationVersion = 'v4';
  readonly provider = 'pagewise';
  readonly supportedUrls = {};
  readonly modelId: string;
  readonly #engine: ChatEngine;

  constructor(engine: ChatEngine) {
    this.#engine = engine;
    this.modelId = engine.info.id;
  }

  async doGenerate(options: AiCallOptions): Promise<AiGenerateResult> {
    const { parts, body } = await this.#start(options, options.abortSignal);
    const content: AiGenerateResult['content'] = [];
    let end: Extract<AiStreamPart, { type: 'finish' }> | undefined;
    let head: AiGenerateResult['response'] | undefined;
    let warnings: AiGenerateResult['warnings'] = [];
    for await (const part of parts) {
      const last = content.at(-1);
      if (part.type === 'stream-start') warnings = part.warnings;
      else if (part.type === 'response-metadata')
        head = { id: part.id, timestamp: part.timestamp, modelId: part.modelId };
      else if (part.type === 'text-start') content.push({ type: 'text', text: '' });
      else if (part.type === 'text-delta' && last?.type === 'text') last.text += part.delta;
      else if (part.type === 'tool-call') content.push(part);
      else if (part.type === 'finish') end = part;
    }
    if (end === undefined || head === undefined) throw bad('the answer has no end');
    const { finishReason, usage, providerMetadata } = end;
    return { content, finishReason, usage, providerMetadata, request: { body }, response: head, warnings };
  }

  async doStream(options: AiCallOptions): ReturnType<AiLanguageModel['doStream']> {
    // A reader who leaves need not wait for the next piece.
    const leave = new AbortController();
    const { abortSignal } = options;
    const signal = abortSignal === undefined ? leave.signal : AbortSignal.any([abortSignal, leave.signal]);
    const { parts, body } = await this.#start(options, signal);
    const stream = new ReadableStream<AiStreamPart>({
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          // Where an answer breaks off, the specification has the error as its last part.
          controller.enqueue({ type: 'error', error });
          controller.close();
        }
      },
      cancel: (reason) => leave.abort(reason),
    });
    return { stream, request: { body } };
  }

  /** Asks; what is refused rejects here. */
  async #start(
    options: AiCallOptions,
    signal: AbortSignal | undefined,
  ): Promise<{ parts: AsyncGenerator<AiStreamPart, undefined>; body: unknown }> {
    const { params, warnings } = mapCall(options);
    const create = (): Promise<AsyncIterable<ChatCompletionChunk>> =>
      this.#engine.chat.completions.create(params, signal === undefined ? {} : { signal });
    const chunks = await create().catch((error: unknown) => {
      throw asAbort(error, signal);
    });
    return { parts: partsOf(chunks, warnings, signal), body: params };
  }
}

/** The only text of an answer. */
const TEXT = 'text';

interface OpenCall {
  id: string;
  name: string;
  input: string;
}

/** A piece of a call, as OpenAI streams it. */
interface CallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

async function* partsOf(
  chunks: AsyncIterable<ChatCompletionChunk>,
  warnings: AiGenerateResult['warnings'],
  signal: AbortSignal | undefined,
): AsyncGenerator<AiStreamPart, undefined> {
  yield { type: 'stream-start', warnings };
  const calls = new Map<number, OpenCall>();
  const logprobs: TokenLogprob[] = [];
  let raw: string | undefined;
  let isOpen = false;
  let head: ChatCompletionChunk | undefined;
  /** The last chunk that tells of usage. */
  let last: ChatCompletionChunk | undefined;
  try {
    for await (const chunk of chunks) {
      if (head === undefined) yield { type: 'response-metadata', ...headOf(chunk) };
      head ??= chunk;
      const [choice] = chunk.choices;
      logprobs.push(...(choice?.logprobs?.content ?? []));
      const text = choice?.delta.content ?? '';
      if (text !== '' && !isOpen) yield { type: 'text-start', id: TEXT };
      isOpen ||= text !== '';
      if (text !== '') yield { type: 'text-delta', id: TEXT, delta: text };
      const deltas = (choice?.delta as { tool_calls?: CallDelta[] } | undefined)?.tool_calls ?? [];
      for (const delta of deltas) yield* callParts(calls, delta);
      // What could not be read is text, and no call: it was written once more as such.
      const broken = (choice as { tool_call_error?: { index: number | null } } | undefined)?.tool_call_error;
      const open = typeof broken?.index === 'number' ? calls.get(broken.index) : undefined;
      if (open !== undefined) yield { type: 'tool-input-end', id: open.id };
      if (typeof broken?.index === 'number') calls.delete(broken.index);
      raw = choice?.finish_reason ?? raw;
      // Some servers tell of it with every chunk, and some never.
      if (chunk.usage) last = chunk;
    }
    const end = last ?? head;
    if (end === undefined) return;
    if (isOpen) yield { type: 'text-end', id: TEXT };
    for (const call of calls.values()) yield* callEnd(call);
    const usage = end.usage ?? undefined;
    const providerMetadata = metadataOf(end, usage, logprobs);
    yield { type: 'finish', finishReason: reasonOf(raw), usage: usageOf(usage), providerMetadata };
  } catch (error) {
    throw asAbort(error, signal);
  }
}

function headOf({ id, created, model }: ChatCompletionChunk): AiGenerateResult['response'] {
  return { id, timestamp: new Date(created * 1000), modelId: model };
}

function* callParts(
  calls: Map<number, OpenCall>,
  { index, id, function: call = {} }: CallDelta,
): Generator<AiStreamPart> {
  let open = calls.get(index);
  if (open === undefined) {
    open = { id: id ?? `call-${index}`, name: call.name ?? '', input: '' };
    calls.set(index, open);
    yield { type: 'tool-input-start', id: open.id, toolName: open.name };
  }
  const delta = call.arguments ?? '';
  open.input += delta;
  if (delta !== '') yield { type: 'tool-input-delta', id: open.id, delta };
}

function* callEnd({ id, name, input }: OpenCall): Generator<AiStreamPart | AiToolCall> {
  yield { type: 'tool-input-end', id };
  yield { type: 'tool-call', toolCallId: id, toolName: name, input: input === '' ? '{}' : input };
}

function reasonOf(raw: string | undefined): AiFinishReason {
  if (raw === 'stop' || raw === 'length') return { unified: raw, raw };
  return { unified: raw === 'tool_calls' ? 'tool-calls' : 'other', raw };
}

function usageOf(usage: Usage | undefined): AiUsage {
  if (usage === undefined) {
    const inputTokens = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
    return { inputTokens, outputTokens: { total: undefined, text: undefined, reasoning: undefined } };
  }
  const { prompt_tokens: total, completion_tokens: generated } = usage;
  const cacheRead = usage.prompt_tokens_details.cached_tokens;
  return {
    inputTokens: { total, noCache: total - cacheRead, cacheRead, cacheWrite: undefined },
    outputTokens: { total: generated, text: generated, reasoning: undefined },
    raw: usage as unknown as NonNullable<AiUsage['raw']>,
  };
}

/** What the SDK has no place for: of the last chunk, and what was told of the tokens. */
function metadataOf(chunk: ChatCompletionChunk, usage: Usage | undefined, tokens: TokenLogprob[]): AiMetadata {
  const { timings, cache, computed_on } = chunk as ChatCompletionChunk & { computed_on?: string };
  const cached_tokens = usage?.prompt_tokens_details.cached_tokens;
  const logprobs = tokens.length === 0 ? undefined : tokens;
  const all = { timings, cache, computed_on, cached_tokens, logprobs };
  const known = Object.entries(all).filter(([, value]) => value !== undefined);
  return { pagewise: Object.fromEntries(known) as unknown as { [key: string]: AiJson } };
}
