/**
 * Everything that crosses the border between a page and a worker: one discriminated union, plain data only. `guard.ts` checks
 * it on both ends. A worker may serve several pages, each through a channel of its own, with ids of its own.
 */

import type {
  CacheBlock,
  CacheEvent,
  CacheExplanation,
  CachePrefix,
  CacheStats,
  EvictionPolicy,
  RestoredPrefix,
} from './cache-types.js';
import type { ErrorRecord } from './errors.js';
import type { TokenLogprob } from './logprob-types.js';
import type { StoredModel } from './model-types.js';
import type { ChatTool, ToolCall, ToolCallError } from './tool-types.js';
import type {
  AdapterInfo,
  Batching,
  CacheReport,
  EngineInfo,
  EngineMetrics,
  FinishReason,
  KvFormat,
  LoadProgress,
  MemoryPlan,
  ModelDescription,
  Precision,
  RequestProgress,
  StepTrace,
  Timings,
  ToolFormat,
  Usage,
} from './types.js';

/** Changes when messages do: a page and a worker of different versions do not understand each other. */
export const PROTOCOL_VERSION = 3;

/** One part of a model, resolved: absolute URLs of the same bytes (tried in order), or a blob. `sha256` is its hash, where it is known. */
export type PartSpec = { kind: 'url'; urls: string[]; sha256?: string } | { kind: 'blob'; blob: Blob; name: string };

/** A model, resolved: what the reader opens. */
export interface SourceSpec {
  /** The registry's id, or the file's name. */
  id: string;
  /** What the registry calls it. */
  name?: string;
  /** Where the id was looked up; absent when it is a file's name. */
  registry?: string;
  /** At least one, unless there is a {@link failure}. */
  parts: PartSpec[];
  /** Why the registry could not be asked: only a stored model can be had under the id. */
  failure?: ErrorRecord;
  /** Size of all parts, where the registry says it. */
  bytes?: number;
  /** Extra headers of requests. */
  headers: Record<string, string>;
}

/** What the engine is built with. */
export interface EngineOptions {
  /** Tokens that one conversation may have; absent: decided by the plan. */
  contextLength?: number;
  /** Most bytes of GPU memory; absent: as much as there is. */
  maxGpuBytes?: number;
  /** Format of the KV cache. */
  kv: KvFormat;
  /** Answers that are generated at once; absent: the engine's default. */
  maxRunning?: number;
  /** Answers that wait; absent: the engine's default. */
  maxQueued?: number;
  /** Steps on the GPU's queue at once; absent: as many as keep it busy. */
  maxStepsAhead?: number;
  /** Tokens of a step, at most; absent: as many as the model's batches take. */
  maxStepTokens?: number;
  /** Absent: continuous. */
  batching?: Batching;
  /** Absent: true. */
  chunkedPrefill?: boolean;
  /** Whether kernels are chosen by measuring them. */
  autotune: boolean;
  /** Whether kernels may be chosen that round activations. */
  precision: Precision;
  /** Absent: as the chat template shows. */
  toolFormat?: ToolFormat;
}

/** What was found out about the GPU before the engine opens it. */
export interface AdapterProbe extends AdapterInfo {
  /** Whether the device gets the `subgroups` feature. */
  subgroups: boolean;
  /** Fewest lanes of a subgroup; 0 when unknown. */
  subgroupMinSize: number;
  /** Most lanes of a subgroup; 0 when unknown. */
  subgroupMaxSize: number;
  /** Largest buffer that a kernel can be given. */
  maxBufferBytes: number;
}

/** Sampling, with every default filled in. */
export interface EngineSampling {
  /** 0 means greedy. */
  temperature: number;
  /** 0 means all. */
  topK: number;
  /** 1 means all. */
  topP: number;
  /** 0 means none. */
  minP: number;
  /** 1 means none. */
  repetitionPenalty: number;
  /** 0 means none. */
  frequencyPenalty: number;
  /** 0 means none. */
  presencePenalty: number;
  /** A safe integer. */
  seed: number;
}

/** A message whose content is one text. */
export interface EngineMessage {
  /** `system`, `user`, `assistant` or `tool`. */
  role: string;
  /** The text. */
  content: string;
  /** Name of the speaker. */
  name?: string;
  /** Calls of an answer. */
  tool_calls?: ToolCall[];
  /** Of a result: the call's. */
  tool_call_id?: string;
}

/** Functions that the model may call. */
export interface EngineTools {
  /** At least one. */
  list: ChatTool[];
  /** Whether the answer has to be a call. */
  isRequired: boolean;
  /** The only one that may be called, an index. */
  only?: number;
  /** Whether an answer may have several calls. */
  isParallel: boolean;
}

/** The end of a message, or of one of its parts: what is before it is kept for a time of its own. */
export interface EngineBreakpoint {
  /** Messages up to it, the one that it ends included. */
  numMessages: number;
  /** The last message's content up to it; absent: all of it. */
  content?: string;
  /** Milliseconds. */
  ttlMs: number;
}

/** How a request uses the prefix cache. */
export interface EngineCacheOptions {
  /** Whether it does. */
  enabled: boolean;
  /** An integer of 32 bits. */
  priority: number;
  /** Absent: kept until the place is needed. */
  ttlMs?: number;
  /** Whether it is given up last. */
  pin: boolean;
  /** Prefixes under different salts never meet. */
  salt: string;
  /** What the prefix is called in listings. */
  name?: string;
  /** The key of the requests that are summed together. */
  group?: string;
  /** Only with messages. */
  breakpoints: EngineBreakpoint[];
}

/** Messages, and the functions that the template tells the model of, at least one if there are any. */
export interface EngineConversation {
  messages: EngineMessage[];
  tools?: ChatTool[];
}

/** What prompts begin with. */
export type EnginePrefix = EngineConversation | { ids: number[] };

/** When a request has its turn, and how long it may take; times in milliseconds from its arrival. */
export interface EngineScheduling {
  /** From -1000 to 1000; a higher one comes first. */
  priority: number;
  /** Absent: none. */
  deadlineMs?: number;
  /** Absent: none. */
  queueTimeoutMs?: number;
  /** Absent: none. */
  totalTimeoutMs?: number;
  /** Whether `progress` events come until the first token. */
  reportsProgress: boolean;
}

/** A JSON Schema, with what errors call it: what they put behind `field` is a path within the schema. */
export interface EngineSchema {
  /** What a grammar calls it, with an `@` before it: letters, digits, `_` and `-`. */
  name: string;
  /** The schema as JSON. */
  json: string;
  /** Such as `tools[0].function.parameters`. */
  field: string;
}

/** What an answer has to be (`Constraint` of `src/grammar`). `field` is what errors call it. */
export type EngineConstraint =
  | ({ kind: 'json_schema' } & EngineSchema)
  | { kind: 'regex'; pattern: string; field: string }
  | { kind: 'lark'; grammar: string; schemas: EngineSchema[]; field: string };

/** A validated request. */
export interface EngineRequest extends EngineScheduling {
  /** Exactly one of the three. */
  input: { messages: EngineMessage[] } | { text: string } | { ids: number[] };
  /** Answers to be generated, 1 to 16. */
  numChoices: number;
  /** Absent: until the model stops or the context is full. */
  maxTokens?: number;
  /** How tokens are drawn. */
  sampling: EngineSampling;
  /** Texts that end the answer. */
  stop: string[];
  /** Token ids that end the answer. */
  stopTokenIds: number[];
  /** Token id and what is added to its logit. */
  logitBias: [number, number][];
  /** The only tokens that may be drawn; absent: all. */
  allowedTokenIds?: number[];
  /** Absent: no calls. Only with messages. */
  tools?: EngineTools;
  /** How many of the most probable tokens to tell of beside each drawn one; absent: tell nothing. */
  logprobs?: number;
  /** Whether the answer is the prompt's embedding. */
  embeds?: boolean;
  /** What the answer has to be; absent: any text. */
  constraint?: EngineConstraint;
  /** How it uses the prefix cache. */
  cache: EngineCacheOptions;
  /** Whether the prompt is computed (without the opening of an answer) and nothing answered. */
  prefillOnly?: boolean;
}

/** A complete answer. */
export interface FinishedEvent {
  kind: 'finished';
  request: number;
  choice: number;
  reason: FinishReason;
  usage: Usage;
  timings: Timings;
  cache: CacheReport;
  /** If that was asked for. */
  embedding?: number[];
}

/**
 * What happened to a request in a step. `request` is the id that the page chose, `choice` the index of the answer. A
 * failure is that of all its answers.
 */
export type RequestEvent =
  | { kind: 'text'; request: number; choice: number; text: string; logprobs?: TokenLogprob[] }
  /** A call begins; its arguments follow. */
  | { kind: 'call'; request: number; choice: number; index: number; id: string; name: string }
  | { kind: 'arguments'; request: number; choice: number; index: number; text: string }
  /** What should have been a call, as it was written; `index` is that of the call that was begun with it. */
  | {
      kind: 'malformed';
      request: number;
      choice: number;
      index: number | null;
      text: string;
      error: Omit<ToolCallError, 'index'>;
    }
  | { kind: 'progress'; request: number; progress: RequestProgress }
  | FinishedEvent
  | { kind: 'failed'; request: number; error: ErrorRecord };

/** A call that is answered by one `result` or `error` with its `id`; the key is the call's `type`. */
export interface Calls {
  /**
   * Loads the model; `progress` messages come before the result. A worker that has a model already answers what it is, if it
   * was loaded under the same `group`.
   */
  load: {
    args: { source: SourceSpec; options: EngineOptions; store: boolean; group: string | null };
    result: EngineInfo;
  };
  /** Reads the header only. */
  inspect: { args: { source: SourceSpec }; result: ModelDescription };
  /** Reads the header only. */
  plan: { args: { source: SourceSpec; options: EngineOptions }; result: MemoryPlan };
  /**
   * Queues a request under its `id`; `events` follow the result, until as many are `finished` as it has choices, or it has
   * `failed`. `name` stands for it in traces.
   */
  submit: { args: { request: EngineRequest; name: string }; result: { promptTokens: number } };
  /** Text to ids. */
  tokenize: { args: { text: string; addSpecial: boolean; parseSpecial: boolean }; result: number[] };
  /** Ids to text. */
  detokenize: { args: { ids: number[]; skipSpecial: boolean }; result: string };
  /** Messages to the prompt's text. */
  applyTemplate: { args: EngineConversation & { addGenerationPrompt: boolean }; result: string };
  /** Counters and state. */
  metrics: { args: Record<never, never>; result: EngineMetrics };
  /** The same as Prometheus reads it. */
  metricsText: { args: Record<never, never>; result: string };
  /** Has `steps` posted from now on, or no longer. */
  stepListen: { args: { isOn: boolean }; result: null };
  /** Scores of the token after each of `positions`. */
  logits: { args: { ids: number[]; positions: number[] }; result: Float32Array[] };
  /** Counters of the prefix cache. */
  cacheStats: { args: Record<never, never>; result: CacheStats };
  /** Every block. */
  cacheBlocks: { args: Record<never, never>; result: CacheBlock[] };
  /** What is cached. */
  cachePrefixes: { args: Record<never, never>; result: CachePrefix[] };
  /** Says what the cache would do for a request; changes nothing. */
  cacheExplain: { args: { request: EngineRequest }; result: CacheExplanation };
  /** Returns tokens. */
  cachePin: { args: { prefix: EnginePrefix; salt: string }; result: number };
  /** Returns tokens. */
  cacheUnpin: { args: { prefix: EnginePrefix; salt: string }; result: number };
  /** Returns blocks. */
  cacheEvict: { args: { prefix: EnginePrefix; salt: string }; result: number };
  /** How blocks are given up from now on. */
  cachePolicy: { args: { policy: EvictionPolicy }; result: null };
  /** Returns blocks. */
  cacheClear: { args: Record<never, never>; result: number };
  /** Waits for the GPU; nothing else is served meanwhile. */
  cacheSave: { args: { prefix: EnginePrefix; salt: string }; result: Blob };
  /** As `cacheSave`. A buffer is transferred. */
  cacheRestore: { args: { data: Blob | ArrayBuffer; cache: EngineCacheOptions }; result: RestoredPrefix };
  /** Has `cacheEvents` posted from now on, or no longer. */
  cacheListen: { args: { isOn: boolean }; result: null };
  /** Every stored model. */
  modelsList: { args: Record<never, never>; result: StoredModel[] };
  /** A stored model, if it is whole. */
  modelsFind: { args: { source: SourceSpec }; result: StoredModel | null };
  /** Says whether there was anything. */
  modelsDelete: { args: { source: SourceSpec }; result: boolean };
  /** `progress` messages come before the result. */
  modelsDownload: { args: { source: SourceSpec }; result: StoredModel };
  /** Ends everything of this page; frees the GPU memory unless other pages use it. The worker may be ended afterwards. */
  unload: { args: Record<never, never>; result: null };
}

/** Name of a call. */
export type CallType = keyof Calls;

/** A call as a message. */
export type CallMessage = { [T in CallType]: { type: T; id: number } & Calls[T]['args'] }[CallType];

/** The first message in either direction: who speaks. What comes before it is refused. */
export interface HelloMessage {
  type: 'hello';
  /** {@link PROTOCOL_VERSION}. */
  protocol: number;
  /** The package's version. */
  version: string;
}

/** From the page to the worker. */
export type ToWorker =
  | CallMessage
  /** `life` is a Web Lock that the page holds for as long as it lives; null where the worker is the page's own. */
  | (HelloMessage & { life: string | null })
  | { type: 'cancel'; request: number }
  /** How many milliseconds a submission to the GPU should take. */
  | { type: 'stepTarget'; ms: number | null }
  /** Answered at once by `pong`, whatever the GPU does. */
  | { type: 'ping' }
  /** Another page wants to be served, through a port or a broadcast channel of that name. */
  | { type: 'connect'; via: MessagePort | string }
  /** The page is gone, or will not listen any more: everything of it ends. */
  | { type: 'leave' };

/** From the worker to the page. */
export type FromWorker =
  | HelloMessage
  | { type: 'result'; id: number; value: Calls[CallType]['result'] }
  | { type: 'error'; id: number; error: ErrorRecord }
  | { type: 'progress'; progress: LoadProgress }
  | { type: 'events'; events: RequestEvent[] }
  | { type: 'cacheEvents'; events: CacheEvent[] }
  /** Times are those of the worker's clock, which began at `timeOrigin`. */
  | { type: 'steps'; steps: StepTrace[]; timeOrigin: number }
  | { type: 'pong' }
  /** So many pages are served now. */
  | { type: 'clients'; num: number }
  /** The last message of a worker. */
  | { type: 'crashed'; error: ErrorRecord };

/** Every message. */
export type Message = ToWorker | FromWorker;
