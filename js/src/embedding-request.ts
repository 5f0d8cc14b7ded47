/**
 * A request to embed texts, checked.
 */

import { bad, fieldsOf, show, tokenId } from './fields.js';
import type { EngineRequest } from './protocol.js';
import { checkLabels, checkModel } from './request.js';
import { checkScheduling } from './schedule-request.js';

/** OpenAI's limit. */
const MAX_INPUTS = 2048;
const FIELDS: readonly string[] = [
  'input',
  'model',
  'encoding_format',
  'user',
  'priority',
  'deadline_ms',
  'timeout_ms',
];

/** What {@link checkEmbeddingRequest} makes of a request. */
export interface CheckedEmbeddingRequest {
  /** One for each text. */
  requests: EngineRequest[];
  /** Whether numbers are wanted as base64. */
  isBase64: boolean;
}

/** Checks a request; `models` are the names that `model` may have. */
export function checkEmbeddingRequest(params: unknown, models: readonly string[]): CheckedEmbeddingRequest {
  const fields = fieldsOf(params, FIELDS);
  checkModel(fields.model, models);
  checkLabels(fields);
  const format = fields.encoding_format ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    throw bad(`encoding_format: "float" or "base64" is needed, ${show(format)} given`);
  }
  const scheduling = checkScheduling(fields, false);
  const request = (input: EngineRequest['input']): EngineRequest => ({
    input,
    numChoices: 1,
    ...scheduling,
    sampling: {
      ...{ temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0 },
      ...{ repetitionPenalty: 1, frequencyPenalty: 0, presencePenalty: 0 },
    },
    stop: [],
    stopTokenIds: [],
    logitBias: [],
    // Every token has to be computed, and nobody goes on from there.
    cache: { enabled: false, priority: 0, pin: false, salt: '', breakpoints: [] },
    embeds: true,
  });
  return { requests: inputsOf(fields.input).map(request), isBase64: format === 'base64' };
}

function inputsOf(input: unknown): EngineRequest['input'][] {
  if (typeof input === 'string') return [textOf(input, 'input')];
  const needed = 'a text, a list of token ids, or a list of either is needed';
  if (!Array.isArray(input) || input.length === 0) throw bad(`input: ${needed}, ${show(input)} given`);
  if (typeof input[0] === 'number') return [idsOf(input, 'input')];
  if (input.length > MAX_INPUTS) throw bad(`input: ${input.length} texts given, ${MAX_INPUTS} allowed`);
  return Array.from(input as unknown[], (one, index) => {
    const where = `input[${index}]`;
    if (typeof one === 'string') return textOf(one, where);
    if (Array.isArray(one)) return idsOf(one, where);
    throw bad(`${where}: ${needed}, ${show(one)} given`);
  });
}

function textOf(text: string, where: string): EngineRequest['input'] {
  if (text === '') throw bad(`${where}: an empty text cannot be embedded`);
  return { text };
}

function idsOf(ids: unknown[], where: string): EngineRequest['input'] {
  if (ids.length === 0) throw bad(`${where}: an empty list of token ids`);
  return { ids: Array.from(ids, (id) => tokenId(where, id)) };
}
