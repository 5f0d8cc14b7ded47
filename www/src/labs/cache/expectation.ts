/**
 * What the prefix cache should do with a prompt, worked out from token ids alone: the beginning that it has in common with
 * an earlier prompt and its answer. The last token of a prompt is always computed, because the first token of the answer is
 * drawn from its result.
 */
import { commonLength } from '../shared/prompt';
import { BLOCK_SIZE } from '../shared/token-runs';

/** What is expected of one request. */
export interface Expectation {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Full blocks that are shared as they are. */
  readonly fullBlocks: number;
  /** Tokens of the block behind them, whose rows are copied. */
  readonly tailTokens: number;
  /** The earlier prompt that has most in common; null where nothing has. */
  readonly like: number | null;
}

/** What the cache should have of `ids` after the `earlier` prompts, each with the tokens of its answer that were computed. */
export function expect(ids: readonly number[], earlier: readonly (readonly number[])[]): Expectation {
  let [cachedTokens, like]: [number, number | null] = [0, null];
  for (const [index, other] of earlier.entries()) {
    const length = Math.min(commonLength(ids, other), ids.length - 1);
    if (length > cachedTokens) [cachedTokens, like] = [length, index];
  }
  return {
    promptTokens: ids.length,
    cachedTokens,
    fullBlocks: Math.floor(cachedTokens / BLOCK_SIZE),
    tailTokens: cachedTokens % BLOCK_SIZE,
    like,
  };
}
