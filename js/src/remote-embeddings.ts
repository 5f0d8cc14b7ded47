/**
 * `embeddings` of a router.
 */

import { checkEmbeddingRequest } from './embedding-request.js';
import type { CreateEmbeddingResponse, EmbeddingCreateParams, EmbeddingCreateParamsFloat } from './embedding-types.js';
import type { Engine } from './engine.js';
import { PagewiseError } from './errors.js';
import { bad, isObject } from './fields.js';
import type { Places, Routed } from './remote.js';
import { type RawAnswer, withoutModel } from './remote-client.js';
import type { RequestOptions } from './types.js';

/** `embeddings` of a `Router`. */
export class RoutedEmbeddings {
  readonly #places: Places;

  /** @internal */
  constructor(places: Places) {
    this.#places = places;
  }

  /**
   * As an engine's; the request is checked in the same way wherever it is answered. A server may pool in another way: what was
   * embedded in one place is not to be compared with what was in the other, which `computed_on` tells apart.
   */
  create(
    params: EmbeddingCreateParamsFloat,
    options?: RequestOptions,
  ): Promise<Routed<CreateEmbeddingResponse<number[]>>>;
  create(params: EmbeddingCreateParams, options?: RequestOptions): Promise<Routed<CreateEmbeddingResponse>>;
  async create(
    params: EmbeddingCreateParams,
    { signal, onQueued }: RequestOptions = {},
  ): Promise<Routed<CreateEmbeddingResponse>> {
    const given = withoutModel(params);
    checkEmbeddingRequest(given, []);
    const place = this.#places.decide(params);
    const { engine, remote } = this.#places;
    if (place === 'local') {
      const options = { ...(signal ? { signal } : {}), ...(onQueued ? { onQueued } : {}) };
      return { ...(await (engine as Engine).embeddings.create(given, options)), computed_on: 'local' };
    }
    if (remote === null) throw bad('remote: there is no server');
    const answer = await remote.ask('embeddings', given, signal);
    onQueued?.();
    return ownShape(answer, remote.baseURL);
  }
}

/** With what servers leave out, in the order of the texts. */
function ownShape({ data, model, usage }: RawAnswer, url: string): Routed<CreateEmbeddingResponse> {
  const isEmbedding = (one: unknown): boolean => isObject(one) && 'embedding' in one && Number.isInteger(one.index);
  if (!Array.isArray(data) || !data.every(isEmbedding)) {
    throw new PagewiseError('network', 'embeddings: the server’s answer has none', { url });
  }
  const found = (data as CreateEmbeddingResponse['data'])
    .map(({ index, embedding }) => ({ object: 'embedding' as const, index, embedding }))
    .sort((a, b) => a.index - b.index);
  const prompt_tokens = isObject(usage) ? Number(usage.prompt_tokens ?? 0) : 0;
  const total = { prompt_tokens, total_tokens: prompt_tokens };
  return { object: 'list', data: found, model: String(model ?? ''), usage: total, computed_on: 'remote' };
}
