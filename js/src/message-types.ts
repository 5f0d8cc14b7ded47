/**
 * Messages of conversations: OpenAI's shapes.
 */

import type { ChatAnswerMessage } from './openai.js';
import type { ChatToolCallMessage, ChatToolMessage } from './tool-types.js';

/** A text part of a message's content. */
export interface ContentPartText {
  /** Always `text`: other kinds are an error. */
  type: 'text';
  /** The text. */
  text: string;
  /** Ends a prefix that is worth keeping. */
  cache_control?: CacheControl | null;
}

/** Marks the end of a prefix: what the prompt has up to here is kept for a time, counted from its last use. */
export interface CacheControl {
  /** Always `ephemeral`. */
  type: 'ephemeral';
  /** How long: 5 minutes (the default) or 1 hour. */
  ttl?: '5m' | '1h';
}

/** Who speaks; see also {@link ChatToolMessage}. */
export type Role = 'system' | 'developer' | 'user' | 'assistant';

/** One message of a conversation. */
export interface ChatMessage {
  /** Who speaks; `developer` is rendered as `system`. */
  role: Role;
  /** Text, or text parts that are joined. */
  content: string | readonly ContentPartText[];
  /** Name of the speaker, for templates that show it. */
  name?: string;
  /** Always null, as in answers. */
  refusal?: null;
  /** Ends a prefix that is worth keeping. */
  cache_control?: CacheControl | null;
}

/** One message of a conversation that may have calls and their results. An answer's message is one as it is. */
export type ChatRequestMessage = ChatMessage | ChatToolCallMessage | ChatToolMessage | ChatAnswerMessage;
