/**
 * What a session's conversation takes of the context, and computing it ahead.
 */

import type { Engine } from './engine.js';
import { PagewiseError } from './errors.js';
import type { ChatRequestMessage } from './message-types.js';
import type { ChatMessage } from './openai.js';
import type { SessionTools } from './prompt-tools.js';

const NO_QUESTION: ChatMessage = { role: 'user', content: '' };

/**
 * Tokens of a conversation, with the opening of an answer. Before anything was asked, those that the system prompt and the tools
 * add to a question: many templates render no prompt without one, or leave the system prompt out.
 */
export async function countTokens(
  engine: Engine,
  messages: readonly ChatRequestMessage[],
  tools?: SessionTools,
): Promise<number> {
  const count = async (given: readonly ChatRequestMessage[], told?: SessionTools): Promise<number> => {
    const text = await engine.applyTemplate(given, told === undefined ? {} : { tools: told.list });
    return (await engine.tokenize(text, { parseSpecial: true })).length;
  };
  if (messages.some(({ role }) => role !== 'system')) return count(messages, tools);
  if (messages.length === 0 && tools === undefined) return 0;
  return Math.max(0, (await count([...messages, NO_QUESTION], tools)) - (await count([NO_QUESTION])));
}

/** Computes a beginning. Templates that want a question first refuse it; then it is computed with the first prompt. */
export async function warm(
  engine: Engine,
  messages: readonly ChatRequestMessage[],
  tools: SessionTools | undefined,
  signal: AbortSignal,
): Promise<void> {
  try {
    await engine.cache.warm(messages, { signal, ...(tools === undefined ? {} : { tools: tools.list }) });
  } catch (error) {
    if (!(error instanceof PagewiseError) || error.code !== 'bad_request') throw error;
  }
}
