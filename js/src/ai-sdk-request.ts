/**
 * A call of the AI SDK as a chat request. What has no counterpart is an error, or a warning where the SDK asks for one.
 */

import type {
  AiCallOptions,
  AiMessage,
  AiPart,
  AiProviderOptions,
  AiTool,
  AiToolOutput,
  AiWarning,
} from './ai-sdk-types.js';
import { bad, show } from './fields.js';
import type { ChatCompletionCreateParamsStreaming } from './openai.js';

/** A chat request, and what of the call it leaves out. */
export interface MappedCall {
  params: ChatCompletionCreateParamsStreaming;
  warnings: AiWarning[];
}

/** A message in the making; which fields there may be depends on the role, and the engine checks them. */
type Message = Record<string, unknown>;

/** The request of a call. */
export function mapCall(options: AiCallOptions): MappedCall {
  const warnings: AiWarning[] = [];
  const { tools = [], toolChoice, responseFormat, reasoning = 'provider-default' } = options;
  if (reasoning !== 'provider-default' && reasoning !== 'none')
    warnings.push({ type: 'unsupported', feature: 'reasoning' });
  const functions = tools.filter((tool) => {
    const isFunction = tool.type === 'function';
    if (!isFunction) warnings.push({ type: 'unsupported', feature: `provider-defined tool ${tool.name}` });
    return isFunction;
  });
  const fields = {
    max_tokens: options.maxOutputTokens,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    seed: options.seed,
    stop: options.stopSequences?.length ? options.stopSequences : undefined,
    response_format: formatOf(responseFormat),
    tools: functions.length > 0 ? functions.map(toolOf) : undefined,
    tool_choice: functions.length > 0 ? choiceOf(toolChoice) : undefined,
  };
  // What a request does not have is left out: an engine that does not know a field refuses it.
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const messages = options.prompt.flatMap(messagesOf);
  const own = options.providerOptions?.pagewise ?? {};
  const shape = { stream: true, stream_options: { include_usage: true } };
  return {
    params: { ...own, ...given, messages, ...shape } as unknown as ChatCompletionCreateParamsStreaming,
    warnings,
  };
}

/** What is thrown for an error: the SDK knows an abort by the exception's name. */
export function asAbort(error: unknown, signal: AbortSignal | undefined): unknown {
  if (!signal?.aborted) return error;
  const { reason } = signal;
  return reason instanceof Error && reason.name === 'AbortError' ? reason : new DOMException('aborted', 'AbortError');
}

function formatOf(format: AiCallOptions['responseFormat']): object | undefined {
  if (format?.type !== 'json') return undefined;
  const { schema, name = 'response', description } = format;
  if (schema === undefined) return { type: 'json_object' };
  const described = description === undefined ? {} : { description };
  return { type: 'json_schema', json_schema: { name, ...described, schema, strict: true } };
}

function toolOf({ name, description, inputSchema, strict }: AiTool): object {
  const optional = { description, strict };
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  return { type: 'function', function: { name, ...given, parameters: inputSchema } };
}

function choiceOf(choice: AiCallOptions['toolChoice']): unknown {
  if (choice === undefined) return undefined;
  return choice.type === 'tool' ? { type: 'function', function: { name: choice.toolName } } : choice.type;
}

function messagesOf({ role, content, providerOptions }: AiMessage): Message[] {
  const cached = cacheControl(providerOptions);
  if (typeof content === 'string') return [{ role, content, ...cached }];
  if (role === 'tool') return content.filter(({ type }) => type !== 'tool-approval-response').map(resultOf);
  const texts = content.flatMap((part) => textPart(part, role));
  const calls = role === 'assistant' ? content.filter(({ type }) => type === 'tool-call').map(callOf) : [];
  const isPlain = texts.every((part) => !('cache_control' in part));
  const joined = isPlain ? texts.map(({ text }) => text).join('') : texts;
  return [{ role, content: joined, ...(calls.length > 0 ? { tool_calls: calls } : {}), ...cached }];
}

function textPart(part: AiPart, role: string): { type: 'text'; text: string; cache_control?: unknown }[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text ?? '', ...cacheControl(part.providerOptions) }];
  // An assistant's thoughts are no part of what it said; its calls follow.
  if (role === 'assistant' && (part.type === 'reasoning' || part.type === 'tool-call')) return [];
  throw bad(`messages: a part of type ${show(part.type)} is not supported in a message of the ${role}`);
}

function callOf({ toolCallId, toolName, input }: AiPart): object {
  const text = typeof input === 'string' ? input : JSON.stringify(input ?? {});
  return { id: toolCallId, type: 'function', function: { name: toolName, arguments: text } };
}

function resultOf({ type, toolCallId, output }: AiPart): Message {
  if (type !== 'tool-result' || output === undefined)
    throw bad(`messages: a part of type ${show(type)} is no tool's result`);
  return { role: 'tool', tool_call_id: toolCallId, content: outputText(output) };
}

function outputText(output: AiToolOutput): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value;
    case 'json':
    case 'error-json':
      return JSON.stringify(output.value);
    case 'execution-denied':
      return output.reason ?? 'the call was not allowed';
    case 'content':
      return output.value
        .map((part) => {
          if (part.type === 'text') return part.text ?? '';
          throw bad(`messages: a tool's result of type ${show(part.type)} is not supported`);
        })
        .join('');
  }
}

function cacheControl(options: AiProviderOptions | undefined): { cache_control?: unknown } {
  const value = options?.pagewise?.cache_control;
  return value === undefined ? {} : { cache_control: value };
}
