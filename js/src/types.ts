/**
 * The public types of loading, planning and describing. What is Pagewise's own is camelCase; OpenAI's shapes are in
 * `openai.ts`.
 */

export type * from './embedding-types.js';
export type * from './logprob-types.js';
export type * from './metrics-types.js';
export type * from './model-types.js';
export type * from './openai.js';
export type * from './response-format.js';
export type * from './sharing-types.js';
export type * from './tool-types.js';

import type { ShareOptions } from './sharing-types.js';
import type { ChatTool } from './tool-types.js';

/** Where a model's bytes come from: one file or one part of a split file. */
export type PartSource = string | URL | Blob;

/**
 * A model: a URL (`'https://…/model.gguf'`, `'/models/model.gguf'`, `'./model.gguf'`), a `File` or `Blob`, the parts of a
 * split GGUF in order, or the id of an entry of the registry (`'smollm2-135m-instruct'`).
 * A string is a registry id when it has no slash, no colon and does not end in `.gguf`.
 */
export type ModelSource = PartSource | readonly PartSource[];

/** Number format of the KV cache. */
export type KvFormat = 'f16' | 'f32';

/** What loading is doing. */
export type LoadPhase = 'download' | 'header' | 'compile' | 'weights' | 'ready';

/** One report of {@link LoadOptions.onProgress}. */
export interface LoadProgress {
  /** In this order: `download` (only with {@link LoadOptions.store}), `header` (metadata), `compile` (buffers and kernels), `weights` (streamed to the GPU), `ready`. */
  phase: LoadPhase;
  /** Bytes of weights read so far; while downloading, bytes of the files that are stored. */
  loadedBytes: number;
  /** Bytes of weights in all (while downloading, of the files); 0 until the header is known. */
  totalBytes: number;
}

/** How a source is found and read. */
export interface SourceOptions {
  /** Aborts reading; the promise rejects with code `cancelled`. */
  signal?: AbortSignal;
  /** URL of the registry that ids are looked up in. Default: `models/registry.json` next to the page. */
  registry?: string | URL;
  /** Extra headers for requests of model bytes, such as `Authorization`; `Range` is Pagewise's own. */
  headers?: Readonly<Record<string, string>>;
  /** Makes the worker; for bundlers that do not understand `new Worker(new URL(…))`. Default: the package's own. */
  createWorker?: () => Worker;
}

/** What decides how much memory a model takes. */
export interface PlanOptions extends SourceOptions {
  /** Tokens that one conversation may have. Default: 4096, or fewer where the model or the GPU allows fewer. */
  contextLength?: number;
  /** Number format of the KV cache. Default `'f16'`. */
  kv?: KvFormat;
  /** Most bytes of GPU memory that the model may take. Default: as much as the device gives. */
  maxGpuBytes?: number;
  /** Answers that are generated at once: each takes memory, and no more than 256 are. Default 4. */
  maxRunning?: number;
}

/**
 * Milliseconds of GPU time that a submission should take, so that the page keeps drawing in between: where the GPU is slow,
 * steps get fewer tokens and more submissions. One for a visible and one for a hidden page, or the same for both; null for
 * no limit.
 */
export type StepTarget = number | null | { visible?: number | null; hidden?: number | null };

/** How requests become steps; `'static'` and `'none'` are for comparison. */
export type Batching = 'continuous' | 'static' | 'none';

/** How exactly prompts and answers are computed. */
export type Precision = 'full' | 'fast';

/**
 * How a model writes calls of tools. `'hermes'`: Hermes, Qwen and many others, `<tool_call>{"name", "arguments"}</tool_call>`.
 * `'llama3'`: `{"name", "parameters"}`, alone or behind `<|python_tag|>`. `'mistral'`: `[TOOL_CALLS]` and a list, or names with
 * `[ARGS]`. `'functiongemma'`: `<start_function_call>call:name{…}<end_function_call>`. `'gemma'`: Python in a block of code
 * marked `tool_code`.
 */
export type ToolFormat = 'hermes' | 'llama3' | 'mistral' | 'functiongemma' | 'gemma';

/** How kernels were chosen. */
export interface KernelTuning {
  /** A fixed table, timing by this load, or timing by an earlier one. */
  source: 'table' | 'measured' | 'remembered';
  /** The way in which few rows (decode) are multiplied. */
  fewRows: string;
  /** The way in which many rows (prefill) are multiplied. */
  manyRows: string;
  /** Milliseconds that timing took in this load. */
  tuneMs: number;
}

/** Options of {@link Engine.load}. */
export interface LoadOptions extends PlanOptions {
  /** Requests that wait for that when no slot is free, at most; further ones reject with `queue_full`. Default 256. */
  maxQueued?: number;
  /**
   * `'continuous'` (the default): a request joins as soon as there is room. `'static'`: as many as there is room for start
   * together, and the next ones when all of them are done. `'none'`: one after the other.
   */
  batching?: Batching;
  /** Whether long prompts are computed in pieces beside other requests' tokens. Default true. */
  chunkedPrefill?: boolean;
  /**
   * Whether kernels are chosen by timing them on this device, at this model's shapes, which takes up to 1.5 s once: the
   * choice is remembered in the browser's cache storage. Without, a fixed table decides, the same on every load. Either way
   * each kernel is checked on the device before it is used. Default true.
   */
  autotune?: boolean;
  /**
   * `'full'` (the default): f32 arithmetic, logits within 1e-3 of exact ones. `'fast'`: activations may be
   * rounded to 8 bits, those of prompts also to f16, where that measures faster, as most engines do always: logits move by
   * up to about 1. Only with {@link autotune}.
   */
  precision?: Precision;
  /** Tokens of a step, at most: a prompt that has more is computed in pieces. Default: as many as suit the GPU. */
  maxStepTokens?: number;
  /**
   * Steps that are on the GPU's queue at once, at most; no more than 4 are. The next ones are submitted before the tokens of
   * one are read back, so that the GPU does not wait for JavaScript. Behind the end of an answer they were computed for
   * nothing, but never show. Default: as many as it takes, measured; 1 submits nothing ahead.
   */
  maxStepsAhead?: number;
  /** How the model writes calls of tools. Default: as its chat template shows, else `'hermes'`. */
  toolFormat?: ToolFormat;
  /** Default: 30 ms while the page is visible, 200 ms while it is hidden. */
  stepTargetMs?: StepTarget;
  /**
   * Whether the model is downloaded into the browser's storage first, as by `Engine.models.download`, so that later loads need
   * no network; files are read where they are. Default false: weights go straight to the GPU, and nothing is written. Either
   * way a model that is stored already is loaded from there. With `share`, the model is also stored where another tab has loaded it
   * without.
   */
  store?: boolean;
  /**
   * Whether tabs of the site share one engine: those that load the same model with the same options and `share`. Requests of all
   * tabs are served together. See {@link Engine.sharing}. Default false.
   */
  share?: boolean | ShareOptions;
  /** Called with the progress of loading; the last call has phase `ready`. */
  onProgress?: ((progress: LoadProgress) => void) | undefined;
}

/** The GPU that computes. */
export interface AdapterInfo {
  /** Vendor, as the browser tells it; may be empty. */
  vendor: string;
  /** Device family or driver, as the browser tells it; may be empty. */
  architecture: string;
  /** Human-readable name; may be empty. */
  description: string;
  /** True when the adapter computes on the CPU (SwiftShader, lavapipe). */
  isSoftware: boolean;
  /** Optional WebGPU features that it has, such as `subgroups` and `shader-f16`. */
  features: string[];
}

/** What a loaded engine is. */
export interface EngineInfo {
  /** Registry id, else the file's name without `.gguf`: the `model` of responses. */
  id: string;
  /** What the registry calls it, else its own name from its metadata, else {@link id}. */
  name: string;
  /** GGUF architecture, such as `llama`. */
  architecture: string;
  /** Most frequent format of the weights by bytes, such as `Q4_1`. */
  quantisation: string;
  /** Number of parameters. */
  numParameters: number;
  /** Tokens that a conversation may have, prompt and answer together. */
  contextLength: number;
  /** Tokens that the model was trained for. */
  trainedContextLength: number;
  /** Number of tokens in the vocabulary. */
  vocabSize: number;
  /** Number format of the KV cache. */
  kv: KvFormat;
  /** Bytes of GPU memory: weights, KV cache and scratch. */
  gpuBytes: number;
  /** What takes them. */
  memory: MemoryPlan;
  /** Whether the file carries a chat template; without one only `completions` works. */
  hasChatTemplate: boolean;
  /** The GPU. */
  adapter: AdapterInfo;
  /** How kernels were chosen for it. */
  tuning: KernelTuning;
}

/** What a model needs, from its header alone. */
export interface MemoryPlan {
  /** Bytes of weights in GPU memory. */
  weightsBytes: number;
  /** Of these, what every step reads: all but an embedding table of its own, of which a token reads one row. */
  stepWeightsBytes: number;
  /** Bytes of KV cache per token of context, all layers. */
  kvBytesPerToken: number;
  /** Bytes of KV cache at {@link contextLength}. */
  kvBytes: number;
  /** Bytes of buffers for intermediate results. */
  scratchBytes: number;
  /** Weights, KV cache and scratch. */
  totalBytes: number;
  /** Context that would be used: the asked one, else the default, shortened to what fits. */
  contextLength: number;
  /** Tokens that the model was trained for. */
  trainedContextLength: number;
  /** Number format of the KV cache. */
  kv: KvFormat;
}

/** One metadata value; arrays longer than 16 are cut, `length` says how long they are. */
export type MetadataValue = string | number | boolean | { length: number; head: (string | number | boolean)[] };

/** One tensor of a file. */
export interface TensorDescription {
  /** Name, such as `blk.0.attn_q.weight`. */
  name: string;
  /** Shape in GGUF's order: the row length first. */
  shape: number[];
  /** Format, such as `Q4_K`. */
  format: string;
  /** Bytes in the file. */
  sizeBytes: number;
}

/** What a file is, from its header alone. */
export interface ModelDescription {
  /** The model's own name; empty when the file has none. */
  name: string;
  /** GGUF architecture, such as `llama`. */
  architecture: string;
  /** Most frequent format of the weights by bytes. */
  quantisation: string;
  /** Number of parameters. */
  numParameters: number;
  /** Bytes of all parts. */
  fileBytes: number;
  /** Tokens that the model was trained for; 0 when the file does not say. */
  contextLength: number;
  /** Whether this engine can run it. */
  isSupported: boolean;
  /** Why not, when {@link isSupported} is false. */
  unsupportedReason?: string;
  /** The file's chat template. */
  chatTemplate?: string;
  /** Every key of the file. */
  metadata: Record<string, MetadataValue>;
  /** Every tensor of the file. */
  tensors: TensorDescription[];
}

/** Options of {@link Engine.tokenize}. */
export interface TokenizeOptions {
  /** Whether the model's BOS (and EOS) token is added where the file says so. Default false. */
  addSpecial?: boolean;
  /** Whether the text of special tokens is turned into them. Default false. */
  parseSpecial?: boolean;
}

/** Options of {@link Engine.logits}. */
export interface LogitsOptions {
  /** Indices into the ids, each at most once, answered in ascending order. Default: the last. */
  positions?: readonly number[];
}

/** Options of {@link Engine.detokenize}. */
export interface DetokenizeOptions {
  /** Whether special tokens are left out. Default true. */
  skipSpecial?: boolean;
}

/** Options of {@link Engine.applyTemplate}. */
export interface TemplateOptions {
  /** Whether the prompt ends where the assistant's answer begins. Default true. */
  addGenerationPrompt?: boolean;
  /** As in a request: functions that the prompt tells the model of. Default: none. */
  tools?: readonly ChatTool[] | null;
}

/** One entry of a registry. */
export interface RegistryEntry {
  /** What {@link Engine.load} takes. */
  id: string;
  /** Human-readable name. */
  name: string;
  /** URLs of the same file, relative to the registry, tried in order. */
  sources: string[];
  /** SHA-256 of the file, in hexadecimal. */
  sha256: string;
  /** Size of the file. */
  bytes: number;
  /** GGUF architecture. */
  architecture: string;
  /** Format of most weights. */
  quantisation: string;
  /** SPDX licence or name of the licence. */
  licence: string;
}

/** A registry: the contents of `models/registry.json`. */
export interface Registry {
  /** Its models. */
  models: RegistryEntry[];
}
