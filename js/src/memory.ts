/**
 * The memory calculator: what keys and values take, for any transformer. For a model that this engine runs,
 * `Engine.plan` tells exactly what will be allocated.
 */

import { bad, type Fields, fieldsOf, integer, show } from './fields.js';
import { callModule, toJson } from './module.js';

const SIZES: readonly string[] = ['numLayers', 'kvHeads', 'headDim', 'contextLength'];
const OPTIONAL_SIZES: readonly string[] = ['numSlidingLayers', 'window', 'numSequences'];
/** Of a size: beyond this a caller has mixed something up. The module's limit. */
const MAX_SIZE = 2 ** 30;

/** A model's numbers, and how much context is wanted. */
export interface KvMemoryParams {
  /** Layers, sliding-window ones included. */
  numLayers: number;
  /** Layers that see only a window; default 0. */
  numSlidingLayers?: number;
  /** Tokens that such a layer sees. */
  window?: number;
  /** Heads of keys and values (with grouped queries fewer than heads of queries). */
  kvHeads: number;
  /** Values of a head. */
  headDim: number;
  /** Tokens of a context. */
  contextLength: number;
  /** Format of keys and values; default `f16`. The engine itself stores `f16` and `f32`. */
  kv?: 'f32' | 'f16' | 'bf16' | 'q8_0' | 'q4_0';
  /** Contexts at once, nothing shared; default 1. */
  numSequences?: number;
}

/** What a KV cache takes. */
export interface KvMemory {
  /** Bytes that a token adds while it is in every layer's window. */
  bytesPerToken: number;
  /** Bytes that a token adds beyond the window: of the layers that see the whole context. */
  bytesPerTokenBeyondWindow: number;
  /** Bytes of the layers that see the whole context. */
  fullBytes: number;
  /** Bytes of the sliding-window layers. */
  slidingBytes: number;
  /** Bytes of all layers, for all sequences. */
  totalBytes: number;
}

/** What a KV cache takes. Rejects with `bad_request` for numbers that cannot be. */
export async function kvMemory(params: KvMemoryParams): Promise<KvMemory> {
  const given = fieldsOf(params, [...SIZES, ...OPTIONAL_SIZES, 'kv'], 'params');
  const checked: Fields = {};
  for (const [name, value] of Object.entries(given)) {
    // As in requests, null means the default.
    if (value !== undefined && value !== null) checked[name] = value;
  }
  for (const name of SIZES) {
    if (checked[name] === undefined) throw bad(`${name}: an integer is needed, ${show(given[name])} given`);
  }
  for (const name of [...SIZES, ...OPTIONAL_SIZES]) integer(checked, name, 0, MAX_SIZE);
  const { kv } = checked;
  if (kv !== undefined && typeof kv !== 'string') throw bad(`kv: the name of a format is needed, ${show(kv)} given`);
  const json = toJson(checked, 'params');
  return callModule((module) => module.kvMemory(json));
}
