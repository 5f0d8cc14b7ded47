/** What a model's weights and its users' keys and values take, and how many users fit. */
import { type KvMemory, type KvMemoryParams, kvMemory } from 'pagewise';
import type { ModelPreset } from './presets';

/** Formats of keys and values that are compared, the largest first. */
export const KV_FORMATS = ['f32', 'f16', 'q8_0', 'q4_0'] as const;
export type KvFormatName = (typeof KV_FORMATS)[number];

/** Formats of weights, and the bits that a weight takes in them on average. */
export const WEIGHT_BITS = { f16: 16, q8_0: 8.5, q4_k_m: 4.85 } as const;
export type WeightFormat = keyof typeof WEIGHT_BITS;

export interface MemoryInput {
  readonly preset: ModelPreset;
  /** Tokens of each user's conversation. */
  readonly contextLength: number;
  readonly users: number;
  readonly kv: KvFormatName;
  readonly weights: WeightFormat;
  readonly gpuBytes: number;
  /** Tokens that all users' prompts begin with and that are kept once; 0 shares nothing. */
  readonly sharedTokens: number;
}

export interface MemoryResult {
  readonly bytesPerToken: number;
  readonly weightsBytes: number;
  /** Of one user, without what is shared. */
  readonly userBytes: number;
  /** Kept once for all. */
  readonly sharedBytes: number;
  /** Of all users asked for, the shared part included. */
  readonly kvBytes: number;
  readonly totalBytes: number;
  /** What sharing spares. */
  readonly sparedBytes: number;
  /** Users that fit beside the weights; 0 where not even those fit. */
  readonly usersThatFit: number;
}

/** Calculates it; all of it is exact but the weights' bytes, which are the format's average. */
export async function calculate(input: MemoryInput): Promise<MemoryResult> {
  const { preset, users, gpuBytes, sharedTokens } = input;
  const alone = await memoryOf(preset, input.kv, input.contextLength);
  const shared = await memoryOf(preset, input.kv, Math.min(sharedTokens, input.contextLength));
  // A sliding-window layer's rows are those before each user's own end: nothing of them is shared for long.
  const sharedBytes = shared.fullBytes;
  const userBytes = alone.totalBytes - sharedBytes;
  const weightsBytes = (preset.parameters * WEIGHT_BITS[input.weights]) / 8;
  const kvBytes = sharedBytes + users * userBytes;
  const left = gpuBytes - weightsBytes - sharedBytes;
  return {
    bytesPerToken: alone.bytesPerToken,
    weightsBytes,
    userBytes,
    sharedBytes,
    kvBytes,
    totalBytes: weightsBytes + kvBytes,
    sparedBytes: users * alone.totalBytes - kvBytes,
    usersThatFit: Math.max(0, userBytes > 0 ? Math.floor(left / userBytes) : 0),
  };
}

/** Keys and values of one user by context length, for each format. */
export async function growth(preset: ModelPreset, contexts: readonly number[]): Promise<Map<KvFormatName, number[]>> {
  const lines = new Map<KvFormatName, number[]>();
  for (const kv of KV_FORMATS) {
    const memories = await Promise.all(contexts.map((context) => memoryOf(preset, kv, context)));
    lines.set(
      kv,
      memories.map(({ totalBytes }) => totalBytes),
    );
  }
  return lines;
}

/** Context lengths from 0 to `max`, evenly, and where the line has a corner: at the window of sliding layers. */
export function contextsUpTo(max: number, num = 16, window: number | null = null): number[] {
  const even = Array.from({ length: num + 1 }, (_, index) => Math.round((max * index) / num));
  const corner = window !== null && window < max ? [window] : [];
  return [...new Set([...even, ...corner])].sort((a, b) => a - b);
}

function memoryOf(preset: ModelPreset, kv: KvFormatName, contextLength: number): Promise<KvMemory> {
  const { numLayers, kvHeads, headDim, sliding } = preset;
  const params: KvMemoryParams = { numLayers, kvHeads, headDim, contextLength, kv };
  return kvMemory(sliding ? { ...params, numSlidingLayers: sliding.numLayers, window: sliding.window } : params);
}
