/**
 * What the worker uses of the WebAssembly module (`src/api` in Rust). Tests put a fake of it into the worker loop.
 *
 * Functions throw, and promises reject with, `{code, message}`; anything else that is thrown is a crash of the module.
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
import type { GrammarModule } from './grammars.js';
import type {
  AdapterProbe,
  EngineCacheOptions,
  EngineMessage,
  EngineOptions,
  EnginePrefix,
  EngineRequest,
  RequestEvent,
} from './protocol.js';
import type {
  ChatTool,
  EngineInfo,
  EngineMetrics,
  LoadPhase,
  MemoryPlan,
  ModelDescription,
  StepTrace,
} from './types.js';

/** An answer in a trace: `request` is the caller's id of it. */
type ById<T> = Omit<T, 'request'> & { request: number };

/** A step, with requests by their ids. */
export interface WasmStep extends Omit<StepTrace, 'parts' | 'preempted'> {
  /** See {@link StepTrace.parts}. */
  parts: ById<StepTrace['parts'][number]>[];
  /** See {@link StepTrace.preempted}. */
  preempted: ById<StepTrace['preempted'][number]>[];
}

/** A block, with holders by their ids. */
export interface WasmBlock extends Omit<CacheBlock, 'holders'> {
  /** See {@link CacheBlock.holders}. */
  holders: ById<CacheBlock['holders'][number]>[];
}

/** Where the module reads a model's bytes. */
export interface ByteSource {
  /** Number of parts. */
  readonly numParts: number;
  /** Size in bytes of one part. */
  partLength(part: number): Promise<number>;
  /** Exactly `length` bytes of one part. */
  read(part: number, offset: number, length: number): Promise<Uint8Array>;
}

/** A loaded engine. While `step` is pending, nothing else may be called. */
export interface WasmEngine {
  /** What it is; `id` is filled in by the worker. */
  info(): Omit<EngineInfo, 'id' | 'adapter'>;
  /** The choice of kernels, if it was measured by this load: to be remembered under the key. */
  measuredTuning(): { key: string; choice: string } | null;
  /** Takes what compiles constraints; needed before a request that has one. */
  useGrammars(module: GrammarModule): void;
  /** Queues a request under an id of the caller's and returns the number of tokens of its prompt. */
  submit(id: number, request: EngineRequest, arrivedMs: number): number;
  /** Forgets a request; no event of it follows. Unknown ids are ignored. */
  cancel(id: number): void;
  /** Whether a step would do anything. */
  hasWork(): boolean;
  /** Runs one step. When it rejects with an error, every request has failed with it. */
  step(): Promise<RequestEvent[]>;
  /** Text to ids. */
  tokenize(text: string, addSpecial: boolean, parseSpecial: boolean): Uint32Array;
  /** Ids to text. */
  detokenize(ids: Uint32Array, skipSpecial: boolean): string;
  /** Messages to the prompt's text, with the tools that the model is to be told of. */
  applyTemplate(messages: EngineMessage[], tools: ChatTool[] | undefined, addGenerationPrompt: boolean): string;
  /** Sets the milliseconds that a submission to the GPU should take; undefined: no limit. */
  setStepTarget(ms: number | undefined): void;
  /** Has steps traced from now on, or no longer. */
  setTracing(isOn: boolean): void;
  /** The steps traced since the last call. */
  takeTrace(): WasmStep[];
  /** Counters and state. */
  metrics(): EngineMetrics;
  /** The same as Prometheus reads it; the name labels every sample. */
  metricsText(modelName: string): string;
  /** Counters of the prefix cache. */
  cacheStats(): CacheStats;
  /** Every block, with holders by their ids. */
  cacheBlocks(): WasmBlock[];
  /** What is cached. */
  cachePrefixes(): CachePrefix[];
  /** Says what the cache would do for a request; changes nothing. */
  cacheExplain(request: EngineRequest): CacheExplanation;
  /** Pins a prefix; returns its tokens that the cache has. */
  cachePin(salt: string, prefix: EnginePrefix): number;
  /** Unpins a prefix; returns the tokens that are not pinned any more. */
  cacheUnpin(salt: string, prefix: EnginePrefix): number;
  /** Drops what begins with a prefix; returns the number of blocks. */
  cacheEvict(salt: string, prefix: EnginePrefix): number;
  /** Chooses how blocks are given up from now on. */
  setCachePolicy(policy: EvictionPolicy): void;
  /** Drops everything; returns the number of blocks. */
  cacheClear(): number;
  /** Hands what the cache has of a prefix to `sink`, piece by piece; resolves with the number of tokens. */
  cacheSave(salt: string, prefix: EnginePrefix, sink: (bytes: Uint8Array) => void): Promise<number>;
  /** Brings back what `cacheSave` wrote; the source has it as its only part. */
  cacheRestore(source: ByteSource, options: EngineCacheOptions): Promise<RestoredPrefix>;
  /** What happened since the last call. */
  cacheEvents(): CacheEvent[];
  /** Scores of the token after each of `positions`, ascending; only while there is no work. */
  logits(ids: Uint32Array, positions: Uint32Array): Promise<Float32Array[]>;
  /** Frees everything, GPU memory included. */
  free(): void;
}

/** The module's exports. */
export interface WasmModule {
  /** Reads, plans and uploads a model. */
  loadEngine(
    source: ByteSource,
    options: EngineOptions & { adapter: AdapterProbe; remembered: Record<string, string> },
    onProgress: (phase: LoadPhase, loadedBytes: number, totalBytes: number) => void,
  ): Promise<WasmEngine>;
  /** Describes a file from its header. */
  inspect(source: ByteSource): Promise<ModelDescription>;
  /** Plans memory from a file's header. */
  plan(source: ByteSource, options: EngineOptions & { adapter?: AdapterProbe }): Promise<MemoryPlan>;
}
