/**
 * The AI SDK's embedding model on an engine, or a router.
 */

import { asAbort } from './ai-sdk-request.js';
import type { AiEmbeddingModel, AiEmbedOptions, AiEmbedResult } from './ai-sdk-types.js';
import { PagewiseError } from './errors.js';
import type { CreateEmbeddingResponse, EmbeddingCreateParams, RequestOptions } from './types.js';

/** What embeds: the `embeddings` of an `Engine`, or of a router of `pagewise/remote`. */
export interface EmbeddingEngine {
  /** As an engine's. */
  create(params: EmbeddingCreateParams, options?: RequestOptions): Promise<CreateEmbeddingResponse>;
}

/** Of a request, as many as OpenAI allows. */
const MAX_VALUES = 2048;

/** See the file's comment. */
export class PagewiseEmbeddingModel implements AiEmbeddingModel {
  readonly specificationVersion = 'v4';
  readonly provider = 'pagewise';
  readonly maxEmbeddingsPerCall = MAX_VALUES;
  readonly supportsParallelCalls = true;
  readonly modelId: string;
  readonly #embeddings: EmbeddingEngine;

  /** Of the model with that id. */
  constructor(embeddings: EmbeddingEngine, modelId: string) {
    this.#embeddings = embeddings;
    this.modelId = modelId;
  }

  async doEmbed({ values, dimensions, abortSignal, providerOptions }: AiEmbedOptions): Promise<AiEmbedResult> {
    const warnings: AiEmbedResult['warnings'] =
      dimensions === undefined ? [] : [{ type: 'unsupported', feature: 'dimensions' }];
    if (values.length === 0) return { embeddings: [], usage: { tokens: 0 }, warnings };
    const params = { ...providerOptions?.pagewise, input: values, encoding_format: 'float' } as const;
    const create = (): Promise<CreateEmbeddingResponse> =>
      this.#embeddings.create(params, abortSignal === undefined ? {} : { signal: abortSignal });
    const answer = await create().catch((error: unknown) => {
      throw asAbort(error, abortSignal);
    });
    const { usage, computed_on } = answer as CreateEmbeddingResponse & { computed_on?: string };
    const embeddings: number[][] = [];
    for (const { index, embedding } of answer.data) if (typeof embedding !== 'string') embeddings[index] = embedding;
    const missing = values.findIndex((_, index) => embeddings[index] === undefined);
    if (missing >= 0) throw new PagewiseError('wrong_result', `embeddings: of text ${missing} there is none`);
    const metadata = computed_on === undefined ? {} : { providerMetadata: { pagewise: { computed_on } } };
    return { embeddings, usage: { tokens: usage.prompt_tokens }, warnings, ...metadata };
  }
}
