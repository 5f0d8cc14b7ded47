/**
 * Functions that a model may call, and its calls: OpenAI's shapes.
 */

import type { CacheControl, ContentPartText } from './message-types.js';

/** A function that the model may call. */
export interface FunctionDefinition {
  /** Letters, digits, `_` and `-`, up to 64. */
  name: string;
  /** What it does: the model reads this. */
  description?: string | null;
  /** JSON Schema of its arguments, an object. Default: with {@link strict} it takes none, else nothing is said of them. */
  parameters?: Readonly<Record<string, unknown>> | null;
  /** Whether arguments always keep to {@link parameters}. Default false: the model is only told of them. */
  strict?: boolean | null;
}

/** A tool: always a function. */
export interface ChatTool {
  /** Always `function`. */
  type: 'function';
  /** The function. */
  function: FunctionDefinition;
}

/**
 * `auto` (the default): text, calls or both, as the model wants. `none`: the model is not told of the tools. `required`: at
 * least one call. A function by its name: calls of that one.
 */
export type ToolChoice = 'auto' | 'none' | 'required' | { type: 'function'; function: { name: string } };

/** A call that the model made. */
export interface ToolCall {
  /** Names it in the conversation. */
  id: string;
  /** Always `function`. */
  type: 'function';
  /** What is to be called. */
  function: {
    /** The function. */
    name: string;
    /** Its arguments, a JSON object as text. */
    arguments: string;
  };
}

/** What is new of a call in a chunk: everything but the arguments comes first, and once. */
export interface ToolCallDelta {
  /** Which call of the answer. */
  index: number;
  /** As in {@link ToolCall}. */
  id?: string;
  /** As in {@link ToolCall}. */
  type?: 'function';
  /** As in {@link ToolCall}; `arguments` has only what is new of them. */
  function?: { name?: string; arguments?: string };
}

/**
 * What should have been a call and is none: Pagewise's own. What the model wrote is in the content; `finish_reason` is
 * `tool_calls` only if there are other calls.
 */
export interface ToolCallError {
  /** Not in the model's format (`malformed`), of a function that there is not, or cut short by the answer's end. */
  code: 'malformed' | 'unknown_tool' | 'incomplete';
  /** Why, in words. */
  message: string;
  /** The index of the call that was begun with it in the stream, and does not count; null if none was. */
  index: number | null;
}

/** An answer of the model's that has calls, in a conversation. */
export interface ChatToolCallMessage {
  /** Always `assistant`. */
  role: 'assistant';
  /** Text before the calls. */
  content?: string | readonly ContentPartText[] | null;
  /** Its calls. */
  tool_calls: readonly ToolCall[];
  /** Always null, as in answers. */
  refusal?: null;
  /** Name of the speaker, for templates that show it. */
  name?: string;
  /** Ends a prefix that is worth keeping. */
  cache_control?: CacheControl | null;
}

/** What a call returned, in a conversation. */
export interface ChatToolMessage {
  /** Always `tool`. */
  role: 'tool';
  /** What it returned, as text. */
  content: string | readonly ContentPartText[];
  /** The id of the call: of an earlier message. */
  tool_call_id: string;
  /** Ends a prefix that is worth keeping. */
  cache_control?: CacheControl | null;
}
