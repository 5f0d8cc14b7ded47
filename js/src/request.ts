/**
 * Requests are checked field by field before they leave the page: what is unknown, malformed or out of range is an error
 * that names the field, never ignored.
 */

import { checkCache } from './cache-request.js';
import { CONSTRAINT_FIELDS, checkConstraint } from './constraint-request.js';
import {
  bad,
  type Fields,
  fieldsOf,
  flag,
  inRange,
  integer,
  isPlainObject,
  MAX_TOKEN_ID,
  number,
  show,
  tokenId,
} from './fields.js';
import { checkConversation } from './message-request.js';
import type { EngineBreakpoint, EngineRequest, EngineSampling } from './protocol.js';
import { checkScheduling, checkStreamOptions } from './schedule-request.js';
import { checkTools } from './tool-request.js';

/** What {@link checkChatRequest} and {@link checkTextRequest} make of a request. */
export interface CheckedRequest {
  /** For the engine. */
  engineRequest: EngineRequest;
  /** Whether the answer is streamed. */
  stream: boolean;
  /** Whether the last chunk carries usage. */
  includeUsage: boolean;
}

const MAX_STOPS = 16;
const MAX_STOP_TOKEN_IDS = 64;
const MAX_LOGIT_BIASES = 300;
/** The engine counts with 32 bits; no context is this long. */
const MAX_TOKENS = 2 ** 32 - 1;
const MAX_CHOICES = 16;
const MAX_TOP_LOGPROBS = 20;

const SHARED_FIELDS = [
  'model',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'repetition_penalty',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'allowed_token_ids',
  ...CONSTRAINT_FIELDS,
  'seed',
  'max_tokens',
  'stop',
  'stop_token_ids',
  'stream',
  'stream_options',
  'n',
  'priority',
  'deadline_ms',
  'timeout_ms',
  'user',
  'metadata',
  'cache',
  'prompt_cache_key',
  'logprobs',
] as const;
const CHAT_FIELDS: readonly string[] = [
  'messages',
  'max_completion_tokens',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'top_logprobs',
  ...SHARED_FIELDS,
];
const TEXT_FIELDS: readonly string[] = ['prompt', ...SHARED_FIELDS];
const MAX_METADATA = 16;
const MAX_METADATA_KEY = 64;
const MAX_METADATA_VALUE = 512;

/** Checks a chat request; `models` are the names that `model` may have. */
export function checkChatRequest(params: unknown, models: readonly string[]): CheckedRequest {
  const fields = fieldsOf(params, CHAT_FIELDS);
  const { messages, breakpoints } = checkConversation(fields.messages);
  const newer = integer(fields, 'max_completion_tokens', 1, MAX_TOKENS);
  const checked = checkShared(fields, models, { messages }, breakpoints);
  const { engineRequest } = checked;
  if (newer !== undefined) {
    if (engineRequest.maxTokens !== undefined && engineRequest.maxTokens !== newer) {
      throw bad(`max_completion_tokens: ${newer} contradicts max_tokens: ${engineRequest.maxTokens}`);
    }
    engineRequest.maxTokens = newer;
  }
  const tools = checkTools(fields);
  if (tools !== undefined) engineRequest.tools = tools;
  const num = integer(fields, 'top_logprobs', 0, MAX_TOP_LOGPROBS);
  if (flag(fields, 'logprobs')) engineRequest.logprobs = num ?? 0;
  else if (num !== undefined) throw bad('top_logprobs: only with logprobs: true');
  return checked;
}

/** Checks a text request; `models` are the names that `model` may have. */
export function checkTextRequest(params: unknown, models: readonly string[]): CheckedRequest {
  const fields = fieldsOf(params, TEXT_FIELDS);
  const checked = checkShared(fields, models, checkPrompt(fields.prompt));
  const num = integer(fields, 'logprobs', 0, MAX_TOP_LOGPROBS);
  if (num !== undefined) checked.engineRequest.logprobs = num;
  return checked;
}

function checkPrompt(prompt: unknown): EngineRequest['input'] {
  if (typeof prompt === 'string') return { text: prompt };
  if (!Array.isArray(prompt)) throw bad(`prompt: a string or a list of token ids is needed, ${show(prompt)} given`);
  if (prompt.length === 0) throw bad('prompt: an empty list of token ids');
  // OpenAI takes a list of prompts; of one it is clear what is meant.
  const [first] = prompt;
  if (typeof first === 'string' || Array.isArray(first)) {
    if (prompt.length === 1) return checkPrompt(first);
    throw bad(`prompt: one prompt a request is supported, a list of ${prompt.length} given`);
  }
  return { ids: Array.from(prompt, (id) => tokenId('prompt', id)) };
}

function checkShared(
  fields: Fields,
  models: readonly string[],
  input: EngineRequest['input'],
  breakpoints: EngineBreakpoint[] = [],
): CheckedRequest {
  checkModel(fields.model, models);
  checkLabels(fields);
  const stream = flag(fields, 'stream');
  const { includeUsage, includeProgress } = checkStreamOptions(fields.stream_options, stream);
  const engineRequest: EngineRequest = {
    input,
    numChoices: integer(fields, 'n', 1, MAX_CHOICES) ?? 1,
    ...checkScheduling(fields, includeProgress),
    sampling: checkSampling(fields),
    stop: checkStop(fields.stop),
    stopTokenIds: checkStopTokenIds(fields.stop_token_ids),
    logitBias: checkLogitBias(fields.logit_bias),
    cache: checkCache(fields, breakpoints),
  };
  const allowed = checkAllowedTokenIds(fields.allowed_token_ids);
  if (allowed !== undefined) engineRequest.allowedTokenIds = allowed;
  const constraint = checkConstraint(fields);
  if (constraint !== undefined) engineRequest.constraint = constraint;
  const maxTokens = integer(fields, 'max_tokens', 1, MAX_TOKENS);
  if (maxTokens !== undefined) engineRequest.maxTokens = maxTokens;
  return { engineRequest, stream, includeUsage };
}

/** Checks `model`. */
export function checkModel(model: unknown, models: readonly string[]): void {
  if (model === undefined || model === null) return;
  if (typeof model !== 'string') throw bad(`model: a string is needed, ${show(model)} given`);
  if (models.includes(model)) return;
  throw bad(`model: ${show(model)} is not loaded; loaded is ${models.map(show).join(' or ')}`);
}

/** `user` and `metadata` have no effect; they are checked with OpenAI's limits so that a mistake shows here too. */
export function checkLabels({ user, metadata }: Fields): void {
  if (user !== undefined && user !== null && typeof user !== 'string') {
    throw bad(`user: a string is needed, ${show(user)} given`);
  }
  if (metadata === undefined || metadata === null) return;
  if (!isPlainObject(metadata)) throw bad(`metadata: a plain object of strings is needed, ${show(metadata)} given`);
  const entries = Object.entries(metadata);
  if (entries.length > MAX_METADATA) throw bad(`metadata: ${entries.length} entries given, ${MAX_METADATA} allowed`);
  for (const [key, value] of entries) {
    if (key.length > MAX_METADATA_KEY) throw bad(`metadata: names of up to ${MAX_METADATA_KEY} characters are allowed`);
    if (typeof value !== 'string' || value.length > MAX_METADATA_VALUE) {
      const needed = `a string of up to ${MAX_METADATA_VALUE} characters is needed`;
      throw bad(`metadata.${key}: ${needed}, ${show(value)} given`);
    }
  }
}

function checkSampling(fields: Fields): EngineSampling {
  return {
    temperature: number(fields, 'temperature', 0, 2) ?? 1,
    topK: integer(fields, 'top_k', 0, MAX_TOKEN_ID) ?? 0,
    topP: number(fields, 'top_p', 0, 1, true) ?? 1,
    minP: number(fields, 'min_p', 0, 1) ?? 0,
    repetitionPenalty: number(fields, 'repetition_penalty', 0, 2, true) ?? 1,
    frequencyPenalty: number(fields, 'frequency_penalty', -2, 2) ?? 0,
    presencePenalty: number(fields, 'presence_penalty', -2, 2) ?? 0,
    seed: integer(fields, 'seed', Number.MIN_SAFE_INTEGER) ?? randomSeed(),
  };
}

function randomSeed(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 21) * 2 ** 32 + low;
}

function checkStop(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const stops: unknown[] = Array.isArray(value) ? value : [value];
  if (stops.length > MAX_STOPS) throw bad(`stop: ${stops.length} texts given, ${MAX_STOPS} allowed`);
  return Array.from(stops, (stop) => {
    if (typeof stop === 'string' && stop !== '') return stop;
    throw bad(`stop: texts that are not empty are needed, ${show(stop)} given`);
  });
}

function checkStopTokenIds(value: unknown): number[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw bad(`stop_token_ids: a list of token ids is needed, ${show(value)} given`);
  if (value.length > MAX_STOP_TOKEN_IDS) {
    throw bad(`stop_token_ids: ${value.length} ids given, ${MAX_STOP_TOKEN_IDS} allowed`);
  }
  return Array.from(value, (id) => tokenId('stop_token_ids', id));
}

/** The engine knows how large the vocabulary is. */
function checkAllowedTokenIds(value: unknown): number[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || value.length === 0) {
    throw bad(`allowed_token_ids: a list of at least one token id is needed, ${show(value)} given`);
  }
  return Array.from(value, (id) => tokenId('allowed_token_ids', id));
}

function checkLogitBias(value: unknown): [number, number][] {
  if (value === undefined || value === null) return [];
  if (!isPlainObject(value))
    throw bad(`logit_bias: a plain object from token id to number is needed, ${show(value)} given`);
  const entries = Object.entries(value);
  if (entries.length > MAX_LOGIT_BIASES) {
    throw bad(`logit_bias: ${entries.length} entries given, ${MAX_LOGIT_BIASES} allowed`);
  }
  return entries.map(([key, bias]) => {
    if (!/^\d+$/.test(key)) throw bad(`logit_bias: token ids are needed as keys, ${show(key)} given`);
    return [tokenId('logit_bias', Number(key)), inRange(`logit_bias.${key}`, bias, -100, 100)];
  });
}
