/**
 * The messages of a conversation, checked.
 */

import { checkCacheControl } from './cache-request.js';
import { bad, type Fields, fieldsOf, isObject, show } from './fields.js';
import type { EngineBreakpoint, EngineMessage } from './protocol.js';
import type { ToolCall } from './tool-types.js';

const ROLES: readonly string[] = ['system', 'developer', 'user', 'assistant', 'tool'];
const COMMON_FIELDS: readonly string[] = ['role', 'content', 'name', 'cache_control'];
/** Of an answer that comes back. OpenAI's clients add more, which say nothing where they are null or empty. */
const EMPTY_FIELDS: readonly string[] = ['refusal', 'audio', 'function_call', 'annotations', 'parsed'];
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  assistant: [...COMMON_FIELDS, 'tool_calls', ...EMPTY_FIELDS],
  tool: [...COMMON_FIELDS, 'tool_call_id'],
};
const PART_FIELDS: readonly string[] = ['type', 'text', 'cache_control'];
const CALL_FIELDS: readonly string[] = ['id', 'type', 'function', 'index'];
const FUNCTION_FIELDS: readonly string[] = ['name', 'arguments', 'parsed_arguments'];

/** Messages whose content is one text each, and the `cache_control`s that were taken out of them. */
export interface Conversation {
  messages: EngineMessage[];
  breakpoints: EngineBreakpoint[];
}

/** Checks messages and makes each content one text. */
export function checkMessages(value: unknown): EngineMessage[] {
  return checkConversation(value).messages;
}

/** The same, with what ends a prefix. */
export function checkConversation(value: unknown): Conversation {
  if (!Array.isArray(value) || value.length === 0) {
    throw bad(`messages: a list of at least one message is needed, ${show(value)} given`);
  }
  const conversation: Conversation = { messages: [], breakpoints: [] };
  // Holes of a list are visited too.
  for (const [index, message] of value.entries()) checkMessage(message, `messages[${index}]`, conversation);
  return conversation;
}

function checkMessage(value: unknown, where: string, { messages, breakpoints }: Conversation): void {
  const role = isObject(value) ? value.role : undefined;
  const known = typeof role === 'string' && Object.hasOwn(FIELDS, role) ? FIELDS[role] : COMMON_FIELDS;
  const fields = fieldsOf(value, known ?? COMMON_FIELDS, where);
  if (typeof role !== 'string' || !ROLES.includes(role)) {
    throw bad(`${where}.role: one of ${ROLES.join(', ')} is needed, ${show(role)} given`);
  }
  checkEmpty(fields, where);
  const calls = role === 'assistant' ? checkCalls(fields.tool_calls, `${where}.tool_calls`) : [];
  // Beside calls there may be no text.
  const content = calls.length > 0 ? (fields.content ?? '') : fields.content;
  const numMessages = messages.length + 1;
  const text = textOf(content, where, (before, ttlMs) => breakpoints.push({ numMessages, content: before, ttlMs }));
  const ttlMs = checkCacheControl(fields.cache_control, where);
  if (ttlMs !== undefined) breakpoints.push({ numMessages, ttlMs });
  const message: EngineMessage = { role: role === 'developer' ? 'system' : role, content: text };
  const { name } = fields;
  if (name !== undefined && name !== null) {
    if (typeof name !== 'string') throw bad(`${where}.name: a string is needed, ${show(name)} given`);
    message.name = name;
  }
  if (calls.length > 0) message.tool_calls = calls;
  if (role === 'tool') message.tool_call_id = checkAnswered(fields.tool_call_id, where, messages);
  messages.push(message);
}

function checkEmpty(fields: Fields, where: string): void {
  for (const name of EMPTY_FIELDS) {
    const value = fields[name] ?? null;
    const isEmpty = value === null || (Array.isArray(value) && value.length === 0);
    // What a client made of the content itself.
    if (!isEmpty && name !== 'parsed') throw bad(`${where}.${name}: only null is supported, ${show(value)} given`);
  }
}

function checkCalls(value: unknown, where: string): ToolCall[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw bad(`${where}: a list of calls is needed, ${show(value)} given`);
  return Array.from(value as unknown[], (call, index) => {
    const place = `${where}[${index}]`;
    const { id, type, function: called } = fieldsOf(call, CALL_FIELDS, place);
    if (typeof id !== 'string' || id === '') throw bad(`${place}.id: a text is needed, ${show(id)} given`);
    if (type !== 'function') throw bad(`${place}.type: "function" is needed, ${show(type)} given`);
    const { name, arguments: json } = fieldsOf(called, FUNCTION_FIELDS, `${place}.function`);
    if (typeof name !== 'string') throw bad(`${place}.function.name: a text is needed, ${show(name)} given`);
    if (typeof json !== 'string') throw bad(`${place}.function.arguments: a text is needed, ${show(json)} given`);
    return { id, type, function: { name, arguments: json } };
  });
}

/** The id of the earlier call that a result answers. */
function checkAnswered(id: unknown, where: string, earlier: readonly EngineMessage[]): string {
  const isCall = ({ tool_calls }: EngineMessage): boolean => tool_calls?.some((call) => call.id === id) ?? false;
  if (typeof id === 'string' && earlier.some(isCall)) return id;
  throw bad(`${where}.tool_call_id: the id of a call in an earlier message is needed, ${show(id)} given`);
}

function textOf(content: unknown, where: string, onBreakpoint: (before: string, ttlMs: number) => void): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) {
    throw bad(`${where}.content: a string or a list of text parts is needed, ${show(content)} given`);
  }
  let text = '';
  for (const [index, part] of (content as unknown[]).entries()) {
    const place = `${where}.content[${index}]`;
    if (!isObject(part) || part.type !== 'text' || typeof part.text !== 'string') {
      const kind = isObject(part) ? show(part.type) : show(part);
      throw bad(`${place}: only parts {type: "text", text} are supported, ${kind} given`);
    }
    fieldsOf(part, PART_FIELDS, place);
    text += part.text;
    const ttlMs = checkCacheControl(part.cache_control, place);
    if (ttlMs !== undefined) onBreakpoint(text, ttlMs);
  }
  return text;
}
