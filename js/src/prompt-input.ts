/**
 * What the Prompt API takes and throws: inputs checked and turned into messages, our errors turned into its exceptions.
 */

import { PagewiseError } from './errors.js';
import { isObject, show } from './fields.js';
import type { ChatCompletionCreateParams, ChatMessage } from './openai.js';

/** A part of a message: text is the only kind that there is. */
export interface LanguageModelMessageContent {
  /** Always `text`; other kinds throw `NotSupportedError`. */
  type: 'text';
  /** The text. */
  value: string;
}

/** One message. */
export interface LanguageModelMessage {
  /** `system` only as the very first one of a session. */
  role: 'system' | 'user' | 'assistant';
  /** Text, or parts that are joined. */
  content: string | readonly LanguageModelMessageContent[];
  /** Continuing an answer that has begun is not supported: true throws `NotSupportedError`. */
  prefix?: boolean;
}

/** What a session is given: messages, or the text of one from the user. */
export type LanguageModelPrompt = string | readonly LanguageModelMessage[];

/** Options of a prompt. */
export interface LanguageModelPromptOptions {
  /** What the answer has to be: a JSON schema, or a regular expression. */
  responseConstraint?: object;
  /** The constraint is never written into the prompt here, so this changes nothing; without a constraint it is an error. */
  omitResponseConstraintInput?: boolean;
  /** Ends it; what it had added is taken out of the session. */
  signal?: AbortSignal;
}

const ROLES: readonly unknown[] = ['system', 'user', 'assistant'];

/** The input as messages; `isFirst` says whether a system message may come now. Throws what the specification says. */
export function toMessages(input: unknown, isFirst: boolean): ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  if (!Array.isArray(input)) throw new TypeError(`a text or a list of messages is needed, ${show(input)} given`);
  if (input.length === 0) return [{ role: 'user', content: '' }];
  return Array.from<unknown, ChatMessage>(input, (message, index) => {
    if (!isObject(message) || !ROLES.includes(message.role)) {
      throw new TypeError(`message ${index}: role system, user or assistant is needed`);
    }
    if (message.prefix === true) {
      const isLast = message.role === 'assistant' && index === input.length - 1;
      if (!isLast) throw new DOMException('only the last message, the assistant’s, can be a prefix', 'SyntaxError');
      throw notSupported('prefix: continuing an answer is not supported');
    }
    if (message.role === 'system' && !(isFirst && index === 0)) {
      throw new TypeError('a system message can only be the first one of a session');
    }
    return { role: message.role as ChatMessage['role'], content: textOf(message.content, index) };
  });
}

function textOf(content: unknown, index: number): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw new TypeError(`message ${index}: content: a text or a list of parts is needed`);
  return Array.from<unknown, string>(content, (part) => {
    if (!isObject(part)) throw new TypeError(`message ${index}: content: parts are objects`);
    if (part.type !== 'text')
      throw notSupported(`message ${index}: content of type ${show(part.type)} is not supported`);
    if (typeof part.value !== 'string') throw new TypeError(`message ${index}: content: a text part needs a text`);
    return part.value;
  }).join('');
}

/** The fields of a request that a constraint becomes. */
export function toConstraint(options: LanguageModelPromptOptions): Partial<ChatCompletionCreateParams> {
  const { responseConstraint, omitResponseConstraintInput = false } = options;
  if (responseConstraint === undefined || responseConstraint === null) {
    if (omitResponseConstraintInput) throw new TypeError('omitResponseConstraintInput needs a responseConstraint');
    return {};
  }
  if (responseConstraint instanceof RegExp) {
    const { source, flags } = responseConstraint;
    if (/[ims]/.test(flags)) throw notSupported(`responseConstraint: the flags ${flags} are not supported`);
    // A request's expression is that of the whole answer; `^` and `$` would say so again.
    const regex = source.replace(/^\^/, '').replace(/(?<!\\)\$$/, '');
    return { regex } as Partial<ChatCompletionCreateParams>;
  }
  if (!isObject(responseConstraint)) throw new TypeError('responseConstraint: a JSON schema or a RegExp is needed');
  const json_schema = { name: 'response', schema: responseConstraint, strict: true };
  return { response_format: { type: 'json_schema', json_schema } } as Partial<ChatCompletionCreateParams>;
}

/** The exception of something that is not there. */
export function notSupported(message: string): DOMException {
  return new DOMException(message, 'NotSupportedError');
}

/** The exception of what does not fit, with both numbers; browsers that have its class get one of it. */
export function quotaExceeded(requested: number, quota: number): DOMException {
  const message = `${requested} tokens do not fit into ${quota}`;
  const { QuotaExceededError: Quota } = globalThis as {
    QuotaExceededError?: new (message: string, options: object) => DOMException;
  };
  if (typeof Quota === 'function') return new Quota(message, { requested, quota });
  return Object.assign(new DOMException(message, 'QuotaExceededError'), { requested, quota });
}

/** What is thrown for an error of the engine; exceptions of the API itself stay as they are. */
export function toException(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (!(error instanceof PagewiseError)) return error;
  const names: Partial<Record<PagewiseError['code'], string>> = {
    bad_request: 'NotSupportedError',
    cancelled: 'AbortError',
    no_webgpu: 'NotSupportedError',
    unsupported_model: 'NotSupportedError',
  };
  const exception = new DOMException(error.message, names[error.code] ?? 'OperationError');
  return Object.defineProperty(exception, 'cause', { value: error });
}
