/**
 * The floor: a step that draws a token must read every weight once, and the keys and values of everybody in it. No schedule
 * and no kernel can be faster than the memory hands these bytes out.
 */

/** What the floor depends on. */
export interface FloorInput {
  /** Bytes of weights that a step reads. */
  readonly weightsBytes: number;
  /** Bytes of keys and values of one token of context. */
  readonly kvBytesPerToken: number;
  /** Tokens of context of each sequence. */
  readonly contextTokens: number;
  /** Sequences in a step. */
  readonly batch: number;
  /** What the memory gives. */
  readonly bytesPerS: number;
}

export interface Floor {
  /** Bytes that a step reads. */
  readonly stepBytes: number;
  /** Milliseconds between two tokens of one answer, at least. */
  readonly tokenMs: number;
  /** Tokens of all answers per second, at most. */
  readonly tokensPerS: number;
}

/** The floor. */
export function floorOf({ weightsBytes, kvBytesPerToken, contextTokens, batch, bytesPerS }: FloorInput): Floor {
  const stepBytes = weightsBytes + batch * contextTokens * kvBytesPerToken;
  const tokenMs = (1000 * stepBytes) / bytesPerS;
  return { stepBytes, tokenMs, tokensPerS: (1000 * batch) / tokenMs };
}

/** Formats of keys and values that lines are drawn for; the engine stores the first two. */
export const FLOOR_FORMATS = ['f32', 'f16', 'q8_0'] as const;
export type FloorFormat = (typeof FLOOR_FORMATS)[number];

/** Bytes of a value. */
const VALUE_BYTES: Readonly<Record<FloorFormat, number>> = { f32: 4, f16: 2, q8_0: 34 / 32 };

/** Bytes of a token's keys and values in another format. */
export function kvBytesIn(format: FloorFormat, loaded: { kv: 'f16' | 'f32'; kvBytesPerToken: number }): number {
  return (loaded.kvBytesPerToken * VALUE_BYTES[format]) / VALUE_BYTES[loaded.kv];
}
