/**
 * The part of the AI SDK's specification (version 4, `LanguageModelV4` and `EmbeddingModelV4` of `@ai-sdk/provider` 4) that is
 * used here. Written down so that the package depends on nothing; a test holds it against the real one.
 */

/** JSON. */
export type AiJson = null | string | number | boolean | AiJson[] | { [key: string]: AiJson };

/** By provider's name; here `pagewise`. */
export type AiProviderOptions = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** What a tool answered. */
export type AiToolOutput =
  | { type: 'text' | 'error-text'; value: string }
  | { type: 'json' | 'error-json'; value: unknown }
  | { type: 'execution-denied'; reason?: string }
  | { type: 'content'; value: readonly { type: string; text?: string }[] };

/** A part of a message; which fields there are depends on its type. */
export interface AiPart {
  /** `text`, `tool-call` and `tool-result` are understood; `reasoning` is left out; others are refused. */
  type: string;
  /** Of texts. */
  text?: string;
  /** Of calls and results. */
  toolCallId?: string;
  /** Of calls and results. */
  toolName?: string;
  /** Of calls. */
  input?: unknown;
  /** Of results. */
  output?: AiToolOutput;
  /** Here: `pagewise.cache_control`. */
  providerOptions?: AiProviderOptions;
}

/** A message. */
export interface AiMessage {
  /** Who speaks. */
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** Text, of system messages; else parts. */
  content: string | readonly AiPart[];
  /** Here: `pagewise.cache_control`. */
  providerOptions?: AiProviderOptions;
}

/** A tool; those of type `provider` are not there. */
export interface AiTool {
  type: 'function' | 'provider';
  name: string;
  description?: string;
  inputSchema?: unknown;
  strict?: boolean;
}

/** A call of a model. */
export interface AiCallOptions {
  /** The conversation. */
  prompt: readonly AiMessage[];
  /** As `max_tokens`. */
  maxOutputTokens?: number;
  /** As in a request. */
  temperature?: number;
  /** As `stop`. */
  stopSequences?: string[];
  /** As `top_p`. */
  topP?: number;
  /** As `top_k`. */
  topK?: number;
  /** As `presence_penalty`. */
  presencePenalty?: number;
  /** As `frequency_penalty`. */
  frequencyPenalty?: number;
  /** As `response_format`. */
  responseFormat?: { type: 'text' } | { type: 'json'; schema?: unknown; name?: string; description?: string };
  /** As in a request. */
  seed?: number;
  /** As in a request. */
  tools?: readonly AiTool[];
  /** As `tool_choice`. */
  toolChoice?: { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string };
  /** Ends it. */
  abortSignal?: AbortSignal;
  /** Not supported; a warning says so. */
  reasoning?: string;
  /** `pagewise`: any field of a request that is Pagewise's own, such as `cache` or `priority`. */
  providerOptions?: AiProviderOptions;
}

/** What was asked and is not there. */
export interface AiWarning {
  type: 'unsupported';
  feature: string;
  details?: string;
}

/** Why an answer ended: by the SDK's name and by ours. */
export interface AiFinishReason {
  unified: 'stop' | 'length' | 'tool-calls' | 'other';
  raw: string | undefined;
}

/** Tokens; those that the prefix cache had are `cacheRead`. Of a server that does not tell, undefined. */
export interface AiUsage {
  inputTokens: {
    total: number | undefined;
    noCache: number | undefined;
    cacheRead: number | undefined;
    cacheWrite: undefined;
  };
  outputTokens: { total: number | undefined; text: number | undefined; reasoning: undefined };
  raw?: { [key: string]: AiJson };
}

/** What the model called. */
export interface AiToolCall {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  /** JSON. */
  input: string;
}

/**
 * Facts of an answer, under `pagewise`: `timings`, `cache`, `cached_tokens`, of a router `computed_on`, and with
 * `providerOptions: {pagewise: {logprobs: true}}` the `logprobs` of its tokens, as in `choices[0].logprobs.content`.
 */
export type AiMetadata = Record<string, { [key: string]: AiJson }>;

/** A piece of a streamed answer. */
export type AiStreamPart =
  | { type: 'stream-start'; warnings: AiWarning[] }
  | { type: 'response-metadata'; id: string; timestamp: Date; modelId: string }
  | { type: 'text-start'; id: string }
  | { type: 'text-delta'; id: string; delta: string }
  | { type: 'text-end'; id: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-end'; id: string }
  | AiToolCall
  | { type: 'finish'; finishReason: AiFinishReason; usage: AiUsage; providerMetadata: AiMetadata }
  | { type: 'error'; error: unknown };

/** A whole answer. */
export interface AiGenerateResult {
  content: ({ type: 'text'; text: string } | AiToolCall)[];
  finishReason: AiFinishReason;
  usage: AiUsage;
  providerMetadata: AiMetadata;
  request: { body: unknown };
  response: { id: string; timestamp: Date; modelId: string };
  warnings: AiWarning[];
}

/** A model for the AI SDK. */
export interface AiLanguageModel {
  readonly specificationVersion: 'v4';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  /** A whole answer. */
  doGenerate(options: AiCallOptions): Promise<AiGenerateResult>;
  /** A streamed one. */
  doStream(options: AiCallOptions): Promise<{ stream: ReadableStream<AiStreamPart>; request: { body: unknown } }>;
}

/** A call of an embedding model. */
export interface AiEmbedOptions {
  /** The texts. */
  values: string[];
  /** Not supported; a warning says so. */
  dimensions?: number;
  /** Ends it. */
  abortSignal?: AbortSignal;
  /** `pagewise`: `priority`, `deadline_ms` and `timeout_ms`. */
  providerOptions?: AiProviderOptions;
}

/** Embedded texts. */
export interface AiEmbedResult {
  /** One for each text, in order. */
  embeddings: number[][];
  /** Tokens of all texts. */
  usage: { tokens: number };
  /** Of a router: `pagewise.computed_on`. */
  providerMetadata?: AiMetadata;
  warnings: AiWarning[];
}

/** An embedding model for the AI SDK. */
export interface AiEmbeddingModel {
  readonly specificationVersion: 'v4';
  readonly provider: string;
  readonly modelId: string;
  /** Texts of a call. */
  readonly maxEmbeddingsPerCall: number;
  readonly supportsParallelCalls: boolean;
  /** Embeds. */
  doEmbed(options: AiEmbedOptions): Promise<AiEmbedResult>;
}
