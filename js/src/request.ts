/**
 * Requests are checked field by field before they leave the page: what is unknown, malformed or out of range is an error
 * that names the field, never ignored.
 */

import { PagewiseError } from './errors.js';
import type { EngineMessage, EngineRequest, EngineSampling } from './protocol.js';

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
const MAX_TOKEN_ID = 2 ** 32 - 1;
/** The engine counts with 32 bits; no context is this long. */
const MAX_TOKENS = 2 ** 32 - 1;

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
  'seed',
  'max_tokens',
  'stop',
  'stop_token_ids',
  'stream',
  'stream_options',
  'n',
  'user',
  'metadata',
] as const;
const CHAT_FIELDS: readonly string[] = ['messages', 'max_completion_tokens', ...SHARED_FIELDS];
const TEXT_FIELDS: readonly string[] = ['prompt', ...SHARED_FIELDS];
const MAX_METADATA = 16;
const MAX_METADATA_KEY = 64;
const MAX_METADATA_VALUE = 512;
const MESSAGE_FIELDS: readonly string[] = ['role', 'content', 'name'];

type Fields = Record<string, unknown>;

/** Checks a chat request; `models` are the names that `model` may have. */
export function checkChatRequest(params: unknown, models: readonly string[]): CheckedRequest {
  const fields = fieldsOf(params, CHAT_FIELDS);
  const messages = checkMessages(fields.messages);
  const newer = integer(fields, 'max_completion_tokens', 1, MAX_TOKENS);
  const checked = checkShared(fields, models, { messages });
  const { engineRequest } = checked;
  if (newer !== undefined) {
    if (engineRequest.maxTokens !== undefined && engineRequest.maxTokens !== newer) {
      throw bad(`max_completion_tokens: ${newer} contradicts max_tokens: ${engineRequest.maxTokens}`);
    }
    engineRequest.maxTokens = newer;
  }
  return checked;
}

/** Checks a text request; `models` are the names that `model` may have. */
export function checkTextRequest(params: unknown, models: readonly string[]): CheckedRequest {
  const fields = fieldsOf(params, TEXT_FIELDS);
  const { prompt } = fields;
  if (typeof prompt === 'string') return checkShared(fields, models, { text: prompt });
  if (!Array.isArray(prompt)) throw bad(`prompt: a string or a list of token ids is needed, ${show(prompt)} given`);
  if (prompt.length === 0) throw bad('prompt: an empty list of token ids');
  return checkShared(fields, models, { ids: Array.from(prompt, (id) => tokenId('prompt', id)) });
}

/** Checks messages and makes each content one text. */
export function checkMessages(value: unknown): EngineMessage[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw bad(`messages: a list of at least one message is needed, ${show(value)} given`);
  }
  // `from` also visits the holes of a list, which `map` skips.
  return Array.from(value, (message, index) => checkMessage(message, `messages[${index}]`));
}

function checkMessage(value: unknown, where: string): EngineMessage {
  if (!isObject(value)) throw bad(`${where}: an object is needed, ${show(value)} given`);
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined && !MESSAGE_FIELDS.includes(key)) {
      throw bad(`${where}.${key} is not supported; supported are ${MESSAGE_FIELDS.join(', ')}`);
    }
  }
  const { role, content, name } = value;
  const roles = ['system', 'developer', 'user', 'assistant'];
  if (typeof role !== 'string' || !roles.includes(role)) {
    throw bad(`${where}.role: one of ${roles.join(', ')} is needed, ${show(role)} given`);
  }
  const message: EngineMessage = { role: role === 'developer' ? 'system' : role, content: textOf(content, where) };
  if (name !== undefined && name !== null) {
    if (typeof name !== 'string') throw bad(`${where}.name: a string is needed, ${show(name)} given`);
    message.name = name;
  }
  return message;
}

function textOf(content: unknown, where: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) {
    throw bad(`${where}.content: a string or a list of text parts is needed, ${show(content)} given`);
  }
  const texts = Array.from(content, (part: unknown, index) => {
    const isText = isObject(part) && part.type === 'text' && typeof part.text === 'string';
    if (isText) return part.text as string;
    const kind = isObject(part) ? show(part.type) : show(part);
    throw bad(`${where}.content[${index}]: only parts {type: "text", text} are supported, ${kind} given`);
  });
  return texts.join('');
}

function checkShared(fields: Fields, models: readonly string[], input: EngineRequest['input']): CheckedRequest {
  checkModel(fields.model, models);
  if ((fields.n ?? 1) !== 1) throw bad(`n: only 1 is supported, ${show(fields.n)} given`);
  checkLabels(fields);
  const stream = flag(fields, 'stream');
  const engineRequest: EngineRequest = {
    input,
    sampling: checkSampling(fields),
    stop: checkStop(fields.stop),
    stopTokenIds: checkStopTokenIds(fields.stop_token_ids),
    logitBias: checkLogitBias(fields.logit_bias),
  };
  const maxTokens = integer(fields, 'max_tokens', 1, MAX_TOKENS);
  if (maxTokens !== undefined) engineRequest.maxTokens = maxTokens;
  return { engineRequest, stream, includeUsage: checkStreamOptions(fields.stream_options, stream) };
}

function checkModel(model: unknown, models: readonly string[]): void {
  if (model === undefined || model === null) return;
  if (typeof model !== 'string') throw bad(`model: a string is needed, ${show(model)} given`);
  if (models.includes(model)) return;
  throw bad(`model: ${show(model)} is not loaded; loaded is ${models.map(show).join(' or ')}`);
}

/** `user` and `metadata` have no effect; they are checked with OpenAI's limits so that a mistake shows here too. */
function checkLabels({ user, metadata }: Fields): void {
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

function checkStreamOptions(value: unknown, stream: boolean): boolean {
  if (value === undefined || value === null) return false;
  if (!isPlainObject(value)) throw bad(`stream_options: a plain object is needed, ${show(value)} given`);
  if (!stream) throw bad('stream_options: only with stream: true');
  for (const [key, field] of Object.entries(value)) {
    if (field !== undefined && key !== 'include_usage') {
      throw bad(`stream_options.${key} is not supported; supported is include_usage`);
    }
  }
  return flag(value, 'include_usage');
}

/** The fields of a request, after refusing those that are not supported. */
function fieldsOf(params: unknown, supported: readonly string[]): Fields {
  if (!isObject(params)) throw bad(`a request object is needed, ${show(params)} given`);
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && !supported.includes(key)) {
      throw bad(`${key} is not supported; supported are ${supported.join(', ')}`);
    }
  }
  return params;
}

function flag(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value !== 'boolean') throw bad(`${name}: true or false is needed, ${show(value)} given`);
  return value;
}

function number(fields: Fields, name: string, min: number, max: number, isOverMin = false): number | undefined {
  const value = fields[name];
  return value === undefined || value === null ? undefined : inRange(name, value, min, max, isOverMin);
}

function inRange(name: string, value: unknown, min: number, max: number, isOverMin = false): number {
  const isInside = typeof value === 'number' && value <= max && (isOverMin ? value > min : value >= min);
  if (isInside) return value;
  throw bad(`${name}: a number ${isOverMin ? 'over' : 'from'} ${min} to ${max} is needed, ${show(value)} given`);
}

function integer(fields: Fields, name: string, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  throw bad(`${name}: an integer from ${min} to ${max} is needed, ${show(value)} given`);
}

function tokenId(name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TOKEN_ID)
    return value as number;
  throw bad(`${name}: token ids (integers from 0) are needed, ${show(value)} given`);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value's fields are all there is to it: a Map, a Date or Headers has none, and would pass as empty. */
export function isPlainObject(value: unknown): value is Fields {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of other windows have another `Object.prototype`, above which there is nothing either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A short form of a value for messages. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** A refusal. */
export function bad(message: string): PagewiseError {
  return new PagewiseError('bad_request', message);
}
