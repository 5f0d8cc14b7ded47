/**
 * Log-probabilities: OpenAI's shapes.
 *
 * They are natural logarithms under the model's own distribution, the softmax of its logits: before temperature, penalties,
 * biases, masks and whatever else changes what is drawn.
 */

/** A token and how probable it is. */
export interface TopLogprob {
  /** Its text; bytes that are no character of their own are written `\xe5`. */
  token: string;
  /** The natural logarithm of its probability. */
  logprob: number;
  /** The bytes of UTF-8 that it adds to the text. */
  bytes: number[];
}

/** A token of an answer. */
export interface TokenLogprob extends TopLogprob {
  /** The most probable tokens at its place, the most probable first: as many as `top_logprobs`. */
  top_logprobs: TopLogprob[];
}

/** Of a chat answer, or a piece of it. */
export interface ChatLogprobs {
  /** One for each token that was drawn, but for the one that only ended the answer. */
  content: TokenLogprob[];
  /** Always null. */
  refusal: null;
}

/** Of a text answer, or a piece of it: lists of equal length. */
export interface CompletionLogprobs {
  /** As {@link TopLogprob.token}. */
  tokens: string[];
  /** As {@link TopLogprob.logprob}. */
  token_logprobs: number[];
  /** The most probable tokens at its place, and the drawn one, with their logprobs; null where none were asked for. */
  top_logprobs: Record<string, number>[] | null;
  /** Where in the answer's text it begins, in characters (code points). */
  text_offset: number[];
}
