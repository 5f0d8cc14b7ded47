/**
 * How an engine is doing: what `engine.metrics()` and `engine.onStep()` tell.
 */

/** Many values in a few numbers: those of times are milliseconds. Without a value, all but the first two are null. */
export interface HistogramSummary {
  /** Number of values. */
  count: number;
  /** Their sum. */
  sum: number;
  /** Half of the values are at most this. Quantiles are off by less than a fifth of themselves. */
  p50: number | null;
  /** 90 % of the values are at most this. */
  p90: number | null;
  /** 95 % of the values are at most this. */
  p95: number | null;
  /** 99 % of the values are at most this. */
  p99: number | null;
  /** The largest value. */
  max: number | null;
}

/** The blocks of one layer group's KV cache. */
export interface KvPoolMetrics {
  /** Blocks in all. */
  numBlocks: number;
  /** Blocks that sequences hold. */
  used: number;
  /** The most that were ever held at once. */
  peak: number;
}

/**
 * How an engine is doing: its counters since it was loaded, and its state now. A request with several answers waits as one
 * and is refused as one; from its first token on, each answer counts by itself.
 */
export interface EngineMetrics {
  /** Requests that wait for their first step, or to be resumed. */
  numWaiting: number;
  /** Requests that hold blocks. */
  numRunning: number;
  /** One for layers that see the whole context, one for sliding-window layers, as far as the model has them. */
  kv: KvPoolMetrics[];
  /** Share of the blocks that sequences hold, 0 to 1, of the fullest pool. */
  kvUsage: number;
  /** Steps computed. */
  numSteps: number;
  /** Of these, steps that were handed to the GPU before the tokens of the one before were read back. */
  numStepsAhead: number;
  /** Tokens of prompts, each counted once however many answers it gets. */
  promptTokens: number;
  /** Tokens of prompts that the prefix cache had. */
  cachedTokens: number;
  /** Tokens sampled. */
  generatedTokens: number;
  /**
   * Tokens sampled for answers that had ended, or were cancelled, while their step was on its way: computed for nothing,
   * never seen, and not among the generated ones.
   */
  overshotTokens: number;
  /** Tokens that went through the model, those computed again included. */
  computedTokens: number;
  /** Share of the tokens looked for in the prefix cache that it had, 0 to 1; null before the first look. */
  prefixHitRate: number | null;
  /** Times that a request had to give its blocks to another. */
  numPreemptions: number;
  /** Complete answers, by why they ended. */
  numFinished: { stop: number; length: number };
  /** Answers that were cancelled. */
  numCancelled: number;
  /** Requests that were refused with `queue_full`. */
  numRejected: number;
  /** Answers that failed with `deadline_exceeded`. */
  numExpired: number;
  /** Answers that failed otherwise. */
  numFailed: number;
  /** Steps that failed for want of memory. */
  numOutOfMemory: number;
  /** From arrival to the first token. */
  ttftMs: HistogramSummary;
  /** Mean time between the later tokens of an answer: one value an answer. */
  tpotMs: HistogramSummary;
  /** Time between two tokens of an answer: one value a token. */
  interTokenMs: HistogramSummary;
  /** From arrival to the start of the first step. */
  queueMs: HistogramSummary;
  /** From arrival to the end, of complete answers. */
  e2eMs: HistogramSummary;
  /** Duration of a step. */
  stepMs: HistogramSummary;
  /** The GPU's part of it, where the GPU can tell. */
  gpuStepMs: HistogramSummary;
  /**
   * The CPU's part of handing it to the GPU: writing its inputs, encoding and submitting. Browsers round their clocks to 0.1
   * or 1 ms, so single values mean little; `sum / count` does not suffer from that.
   */
  encodeMs: HistogramSummary;
  /** Tokens of a step. */
  stepTokens: HistogramSummary;
  /** Sequences of a step. */
  stepSequences: HistogramSummary;
  /** Bytes of WebAssembly memory; it never shrinks, so this is also the most that was used. */
  wasmMemoryBytes: number;
}

/** An answer, in a {@link StepTrace}. */
export interface StepAnswer {
  /** The `id` of the response or of its chunks. */
  request: string;
  /** The `index` of the choice. */
  choice: number;
}

/** One answer's part of a step: its tokens from `start` up to `end`. */
export interface StepPart extends StepAnswer {
  /** First position computed. */
  start: number;
  /** One past the last. */
  end: number;
  /** Tokens of the prompt: positions below it are prefill, the others decode. */
  numPrompt: number;
  /** Whether a token was drawn. */
  samples: boolean;
}

/** What one step did. */
export interface StepTrace {
  /** When it began, in milliseconds of this page's `performance.now()`. */
  startMs: number;
  /** When it ended. */
  endMs: number;
  /** How long the GPU computed; null where it cannot tell. */
  gpuMs: number | null;
  /** How long it took to hand it to the GPU, by the browser's rounded clock; null if there was nothing to be handed. */
  encodeMs: number | null;
  /** Requests that waited when it was planned. */
  numWaiting: number;
  /** Who computed what. */
  parts: StepPart[];
  /** Those that had to give up their blocks. */
  preempted: StepAnswer[];
}
