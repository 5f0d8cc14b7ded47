/**
 * Requests, answers and chunks. Names and shapes are OpenAI's (snake_case), and what is Pagewise's own in them follows.
 */

import type { ChatLogprobs, CompletionLogprobs } from './logprob-types.js';
import type { ChatRequestMessage } from './message-types.js';
import type { ResponseFormat } from './response-format.js';
import type { ChatTool, ToolCall, ToolCallDelta, ToolCallError, ToolChoice } from './tool-types.js';

export type * from './message-types.js';

/** How a request uses the prefix cache: Pagewise's own. It never changes the answer. `null` means the default. */
export interface RequestCacheOptions {
  /** Whether it reuses what is there, and leaves there what it computes. Default true. */
  enabled?: boolean | null;
  /** An integer, default 0: what has a lower priority is given up first. */
  priority?: number | null;
  /** Over 0: drop what was not used for so long. Default: keep it until its place is needed. */
  ttl_seconds?: number | null;
  /** Whether the prompt, up to its last `cache_control`, is given up last. Default false. */
  pin?: boolean | null;
  /** Prefixes under different salts never meet; up to 256 bytes, well-formed text. Default: none. */
  salt?: string | null;
  /** What the prompt up to its last `cache_control` is called by `engine.cache.prefixes()`; up to 256 bytes. */
  name?: string | null;
}

/** Options of streaming. */
export interface StreamOptions {
  /** Whether a last chunk with empty `choices` carries `usage`. */
  include_usage?: boolean;
  /** Whether chunks with empty `choices` carry `progress` until the first token: Pagewise's own. */
  include_progress?: boolean;
}

/** Who comes first: a level, or an integer from -1000 to 1000. */
export type Priority = 'interactive' | 'normal' | 'batch' | number;

/** How long a request may take, in milliseconds from its arrival. */
export interface RequestTimeouts {
  /** Until it is computed on for the first time. */
  queue?: number | null;
  /** Until its answer is complete. */
  total?: number | null;
}

/** How far a request is that has no token yet: Pagewise's own. */
export type RequestProgress =
  | {
      /** It waits. */
      state: 'waiting';
      /** Requests before it: 0 is next. */
      position: number;
      /** Milliseconds that it will probably wait still; null where nothing is known yet. */
      estimated_wait_ms: number | null;
    }
  | {
      /** Its prompt is being computed. */
      state: 'prefill';
      /** Tokens of the prompt. */
      total: number;
      /** Those that the prefix cache had. */
      cached: number;
      /** Those computed so far. */
      computed: number;
    };

/** Sampling and stopping, common to both kinds of request. `null` means the default. */
export interface SamplingOptions {
  /** The loaded model's id or name; any other is an error. */
  model?: string | null;
  /** 0 to 2, default 1 (OpenAI's default); 0 is greedy. */
  temperature?: number | null;
  /** Keep the smallest set of tokens with this probability, over 0 to 1, default 1 (all). */
  top_p?: number | null;
  /** Keep the k most probable tokens; default 0 (all). */
  top_k?: number | null;
  /** Drop tokens less probable than this share of the most probable one, 0 to 1, default 0. */
  min_p?: number | null;
  /** Over 0 to 2, default 1 (none): divides the positive logits of tokens already seen, prompt included; below 0.001 counts as that. */
  repetition_penalty?: number | null;
  /** -2 to 2, default 0: subtracted once per earlier occurrence in the answer. */
  frequency_penalty?: number | null;
  /** -2 to 2, default 0: subtracted once when the token occurred in the answer. */
  presence_penalty?: number | null;
  /** Token id to a value from -100 to 100 that is added to its logit. At most 300 entries. */
  logit_bias?: Readonly<Record<string, number>> | null;
  /**
   * The only tokens that may be drawn, whatever their probability or bias; at least one. The model's own end is among them
   * only if it is listed. Default: all.
   */
  allowed_token_ids?: readonly number[] | null;
  /** What the answer has to be: text (the default), a JSON object, or JSON that a schema allows. */
  response_format?: ResponseFormat | null;
  /** A Lark grammar, in llguidance's variant, that derives the answer from `start`. Pagewise's own. */
  grammar?: string | null;
  /** A regular expression, in the syntax of Rust's `regex`, that matches the whole answer. Pagewise's own. */
  regex?: string | null;
  /** An integer: the same seed gives the same text. Default: random. */
  seed?: number | null;
  /** Most tokens to generate. Default: until the model stops or the context is full. */
  max_tokens?: number | null;
  /** A text, or up to 16 of them, that ends the answer and is not part of it. */
  stop?: string | readonly string[] | null;
  /** Up to 64 token ids that end the answer, besides the model's own. */
  stop_token_ids?: readonly number[] | null;
  /** Whether the answer comes as a stream of chunks. */
  stream?: boolean | null;
  /** Options of streaming; only with `stream: true`. */
  stream_options?: StreamOptions | null;
  /** Number of answers, 1 (the default) to 16; the prompt is computed once for all. */
  n?: number | null;
  /**
   * Who comes first when not all requests fit: `interactive` (1), `normal` (0, the default), `batch` (-1), or any integer
   * from -1000 to 1000. Who waits long moves up. Pagewise's own.
   */
  priority?: Priority | null;
  /** Milliseconds from now: an answer that is not complete by then fails with `deadline_exceeded`. Pagewise's own. */
  deadline_ms?: number | null;
  /** Milliseconds after which it fails with `deadline_exceeded`: in all, or of waiting and in all. Pagewise's own. */
  timeout_ms?: number | RequestTimeouts | null;
  /** Has no effect here, nor on OpenAI's answers. */
  user?: string | null;
  /** Has no effect here, nor on OpenAI's answers. */
  metadata?: Readonly<Record<string, string>> | null;
  /** How the prefix cache is used. */
  cache?: RequestCacheOptions | null;
  /**
   * Requests with the same key are summed in `engine.cache.stats().groups`; up to 256 bytes. It is also the prefix's name
   * where {@link RequestCacheOptions.name} gives none.
   */
  prompt_cache_key?: string | null;
}

/** A chat request, in OpenAI's shape. Any other field is an error that names it. */
export interface ChatCompletionCreateParams extends SamplingOptions {
  /** The conversation. */
  messages: readonly ChatRequestMessage[];
  /** Functions that the model may call, 1 to 128. */
  tools?: readonly ChatTool[] | null;
  /** Which of them it calls; only with `tools`. Default `auto`. */
  tool_choice?: ToolChoice | null;
  /** Whether an answer may have several calls; only with `tools`. Default true: false ends the answer behind the first. */
  parallel_tool_calls?: boolean | null;
  /** Whether the answer tells how probable its tokens were. Default false. */
  logprobs?: boolean | null;
  /** 0 to 20, default 0: tell of so many of the most probable tokens beside each; only with `logprobs`. */
  top_logprobs?: number | null;
  /** The newer name of `max_tokens`; giving both with different values is an error. */
  max_completion_tokens?: number | null;
}

/** A streaming chat request. */
export interface ChatCompletionCreateParamsStreaming extends ChatCompletionCreateParams {
  /** Streaming. */
  stream: true;
}

/** A chat request that is answered at once. */
export interface ChatCompletionCreateParamsNonStreaming extends ChatCompletionCreateParams {
  /** Not streaming. */
  stream?: false | null;
}

/** A request to continue a text, in OpenAI's shape. Any other field is an error that names it. */
export interface CompletionCreateParams extends SamplingOptions {
  /** The text, or its token ids. */
  prompt: string | readonly number[];
  /** 0 to 20: tell how probable each token was, and so many of the most probable ones. Default: tell nothing. */
  logprobs?: number | null;
}

/** A streaming text request. */
export interface CompletionCreateParamsStreaming extends CompletionCreateParams {
  /** Streaming. */
  stream: true;
}

/** A text request that is answered at once. */
export interface CompletionCreateParamsNonStreaming extends CompletionCreateParams {
  /** Not streaming. */
  stream?: false | null;
}

/** Why an answer ended: the model or a stop rule, `max_tokens` or the context, or with calls to be made. */
export type FinishReason = 'stop' | 'length' | 'tool_calls';

/** Tokens of a request. */
export interface Usage {
  /** Tokens of the whole prompt. */
  prompt_tokens: number;
  /** Tokens generated. */
  completion_tokens: number;
  /** The sum. */
  total_tokens: number;
  /** Of the prompt's tokens. */
  prompt_tokens_details: {
    /** Those that were not computed, because the prefix cache had them. */
    cached_tokens: number;
  };
}

/** What the prefix cache did for a request: Pagewise's own. */
export interface CacheReport {
  /** Tokens of the prompt that were not computed. */
  read_tokens: number;
  /** Tokens that are in the cache because of this request. */
  written_tokens: number;
  /** Why it was not more; null if nothing more could be expected. */
  miss: CacheMiss | null;
}

/** Where and why reuse ended before the prompt did. */
export interface CacheMiss {
  /** Position of the first token that was not reused. */
  position: number;
  /**
   * Never computed (`cold`); given up for its place (`evicted`) or its age (`expired`); other tokens (`differs`), which the
   * chat template wrote and no message (`template_changed`: said only where an earlier request proves it); there under
   * another salt (`salted`); not wanted (`disabled`).
   */
  reason: 'cold' | 'evicted' | 'expired' | 'differs' | 'template_changed' | 'salted' | 'disabled';
  /** The token that the cache has there, if tokens differ. */
  expected: number | null;
  /** The token that the prompt has there. */
  found: number | null;
}

/**
 * How long a request took. Of several answers: the first one's start and first token, the mean of times between tokens,
 * and the sum of tokens generated per second.
 */
export interface Timings {
  /** Milliseconds from arrival until it was first computed on. */
  queue_ms: number;
  /** Milliseconds from arrival to the first token out. */
  ttft_ms: number;
  /** Mean milliseconds between later tokens; null when there are none. */
  tpot_ms: number | null;
  /** Prompt tokens computed per second, waiting excluded; null when it was too quick to tell. */
  prefill_tokens_per_s: number | null;
  /** Tokens generated per second after the first; null when there are none. */
  decode_tokens_per_s: number | null;
}

/** The answer to a chat request. */
export interface ChatCompletion {
  /** Unique id, `chatcmpl-…`. */
  id: string;
  /** Always `chat.completion`. */
  object: 'chat.completion';
  /** Unix seconds. */
  created: number;
  /** The engine's id. */
  model: string;
  /** The answers: `n` of them. */
  choices: ChatChoice[];
  /** Tokens. */
  usage: Usage;
  /** Times: Pagewise's own. */
  timings: Timings;
  /** What was reused: Pagewise's own. */
  cache: CacheReport;
}

/** An answer of a {@link ChatCompletion}. */
export interface ChatChoice {
  /** From 0 to `n - 1`. */
  index: number;
  /** The answer. */
  message: ChatAnswerMessage;
  /** Why it ended. */
  finish_reason: FinishReason;
  /** If they were asked for. */
  logprobs: ChatLogprobs | null;
  /** The first of what should have been calls and are none: Pagewise's own. */
  tool_call_error?: ToolCallError;
}

/** An answer as a message. */
export interface ChatAnswerMessage {
  /** Always `assistant`. */
  role: 'assistant';
  /** The text; null if there are only calls. */
  content: string | null;
  /** Always null. */
  refusal: null;
  /** Its calls, if there are any. */
  tool_calls?: ToolCall[];
}

/** One piece of a streamed chat answer. */
export interface ChatCompletionChunk {
  /** The same in every chunk of an answer. */
  id: string;
  /** Always `chat.completion.chunk`. */
  object: 'chat.completion.chunk';
  /** Unix seconds, the same in every chunk. */
  created: number;
  /** The engine's id. */
  model: string;
  /** One choice; none in chunks that carry `usage` or `progress`. */
  choices: ChatChunkChoice[];
  /** Only with `stream_options.include_usage`: null in every chunk but the last. */
  usage?: Usage | null;
  /** Times: Pagewise's own, on the chunk with a `finish_reason` and on the usage chunk. */
  timings?: Timings;
  /** What was reused: Pagewise's own, where `timings` are. */
  cache?: CacheReport;
  /** Only with `stream_options.include_progress`, in chunks with empty `choices`. */
  progress?: RequestProgress;
}

/** A piece of an answer, in a {@link ChatCompletionChunk}. */
export interface ChatChunkChoice {
  /** Whose piece it is, from 0 to `n - 1`. */
  index: number;
  /** What is new: `role` in the first chunk, then `content` and `tool_calls`. */
  delta: { role?: 'assistant'; content?: string; tool_calls?: ToolCallDelta[] };
  /** Why it ended; null until the end. */
  finish_reason: FinishReason | null;
  /** Of the tokens that are new, if they were asked for. */
  logprobs: ChatLogprobs | null;
  /** Where `content` is what should have been a call and is none: Pagewise's own. */
  tool_call_error?: ToolCallError;
}

/** The answer to a text request, whole or one chunk of it (OpenAI uses one shape for both). */
export interface Completion {
  /** Unique id, `cmpl-…`. */
  id: string;
  /** Always `text_completion`. */
  object: 'text_completion';
  /** Unix seconds. */
  created: number;
  /** The engine's id. */
  model: string;
  /** The answers; in a chunk one, or none where it carries `usage` or `progress`. */
  choices: CompletionChoice[];
  /** Tokens; in chunks as for {@link ChatCompletionChunk.usage}. */
  usage?: Usage | null;
  /** Times: Pagewise's own. */
  timings?: Timings;
  /** What was reused: Pagewise's own, where `timings` are. */
  cache?: CacheReport;
  /** As for {@link ChatCompletionChunk.progress}. */
  progress?: RequestProgress;
}

/** An answer of a {@link Completion}, or a piece of it. */
export interface CompletionChoice {
  /** From 0 to `n - 1`. */
  index: number;
  /** The text, or what is new of it. */
  text: string;
  /** Why it ended; null until the end. */
  finish_reason: FinishReason | null;
  /** Of the tokens that are new, if they were asked for. */
  logprobs: CompletionLogprobs | null;
}

/** Options of a request. */
export interface RequestOptions {
  /** Cancels the request, waiting, in prefill or while generating; it then rejects with code `cancelled`. */
  signal?: AbortSignal;
  /** Called when the request has been checked and has its place in the queue: what is refused is refused before. */
  onQueued?: () => void;
}
