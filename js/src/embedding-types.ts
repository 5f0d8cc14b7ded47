/**
 * Embeddings: OpenAI's shapes.
 */

import type { Priority, RequestTimeouts } from './openai.js';

/** A request to embed texts, in OpenAI's shape. Any other field is an error that names it. */
export interface EmbeddingCreateParams {
  /** A text, its token ids, or up to 2048 of either. Each has to fit into the context. */
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  /** The loaded model's id or name; any other is an error. */
  model?: string | null;
  /** Numbers (`float`, the default), or the base64 of their bytes as little-endian f32. */
  encoding_format?: 'float' | 'base64' | null;
  /** Has no effect here. */
  user?: string | null;
  /** As in {@link SamplingOptions}. */
  priority?: Priority | null;
  /** As in {@link SamplingOptions}. */
  deadline_ms?: number | null;
  /** As in {@link SamplingOptions}. */
  timeout_ms?: number | RequestTimeouts | null;
}

/** A request whose answer has numbers. */
export interface EmbeddingCreateParamsFloat extends EmbeddingCreateParams {
  /** Numbers: the default. */
  encoding_format?: 'float' | null;
}

/** One text, embedded: as numbers, or as what `Values` says. */
export interface Embedding<Values extends number[] | string = number[] | string> {
  /** Always `embedding`. */
  object: 'embedding';
  /** Index of the text. */
  index: number;
  /**
   * The mean of the last hidden states of the text's tokens, behind the model's output norm, scaled to length 1; as base64
   * if that was asked for.
   */
  embedding: Values;
}

/** The answer to {@link EmbeddingCreateParams}. */
export interface CreateEmbeddingResponse<Values extends number[] | string = number[] | string> {
  /** Always `list`. */
  object: 'list';
  /** One for each text, in order. */
  data: Embedding<Values>[];
  /** The engine's id. */
  model: string;
  /** Tokens of all texts. */
  usage: {
    /** Of all texts. */
    prompt_tokens: number;
    /** The same. */
    total_tokens: number;
  };
}
