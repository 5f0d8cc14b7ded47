/**
 * Log-probabilities in the shapes of both kinds of answers.
 */

import type { ChatLogprobs, CompletionLogprobs, TokenLogprob } from './logprob-types.js';

/** Of a chat answer; null where none were asked for. */
export function chatLogprobs(tokens: readonly TokenLogprob[] | undefined): ChatLogprobs | null {
  return tokens === undefined ? null : { content: [...tokens], refusal: null };
}

/** Lays tokens of a text answer out in lists, and knows where in the text the next one begins. */
export class CompletionLogprobList {
  readonly #num: number | undefined;
  #offset = 0;

  /** `num` is how many of the most probable tokens were asked for; undefined if no log-probabilities were. */
  constructor(num: number | undefined) {
    this.#num = num;
  }

  /** The next tokens of the answer; null where none were asked for. */
  next(tokens: readonly TokenLogprob[] | undefined): CompletionLogprobs | null {
    if (this.#num === undefined) return null;
    const found = tokens ?? [];
    return {
      tokens: found.map(({ token }) => token),
      token_logprobs: found.map(({ logprob }) => logprob),
      top_logprobs: this.#num === 0 ? null : found.map(topOf),
      text_offset: found.map((token) => this.#place(token)),
    };
  }

  #place({ bytes }: TokenLogprob): number {
    const offset = this.#offset;
    // A character is counted with its first byte: the others begin with the bits 10.
    this.#offset += bytes.filter((byte) => (byte & 0xc0) !== 0x80).length;
    return offset;
  }
}

function topOf({ token, logprob, top_logprobs }: TokenLogprob): Record<string, number> {
  return Object.fromEntries([...top_logprobs.map((top) => [top.token, top.logprob]), [token, logprob]]);
}
