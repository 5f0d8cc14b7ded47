/** What people paste: a text, messages, a request, or a log of requests with one a line. */
import type { ChatMessage, ExplainablePrompt, ExplainableRequest } from 'pagewise';

/** A line of a log that is no prompt. */
export interface BadLine {
  readonly line: number;
  readonly reason: string;
}

/** A prompt of a log. */
export interface LogEntry {
  /** Of the text, from 1. */
  readonly line: number;
  readonly prompt: ExplainablePrompt;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A pasted prompt: JSON of messages or of a request where it is that, else a text. */
export function parsePrompt(text: string): ExplainablePrompt {
  const trimmed = text.trim();
  if (!/^[[{"]/.test(trimmed)) return text;
  try {
    return promptOf(JSON.parse(trimmed)) ?? text;
  } catch {
    return text;
  }
}

/** A value as a prompt; requests inside of a `body` or `request`, as batch files and logs have them, are found. */
function promptOf(value: unknown): ExplainablePrompt | null {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.every(isObject) && value.length > 0 ? value : null;
  if (!isObject(value)) return null;
  if ('messages' in value || 'prompt' in value) return value as ExplainableRequest;
  return promptOf(value.body ?? value.request ?? null);
}

/** A log: a request a line (JSONL), or a list of requests. */
export function parseLog(text: string): { entries: LogEntry[]; bad: BadLine[] } {
  const list = listOf(text);
  if (list) return { entries: list.map((prompt, index) => ({ line: index + 1, prompt })), bad: [] };
  const entries: LogEntry[] = [];
  const bad: BadLine[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      const prompt = promptOf(JSON.parse(line));
      if (prompt === null) bad.push({ line: index + 1, reason: 'prompt' });
      else entries.push({ line: index + 1, prompt });
    } catch (error) {
      bad.push({ line: index + 1, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return { entries, bad };
}

/** A JSON list of requests; null where it is something else, such as a list of messages. */
function listOf(text: string): ExplainablePrompt[] | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value) || !value.every((one) => isObject(one) && !('role' in one))) return null;
    const prompts = value.map(promptOf);
    return prompts.every((prompt) => prompt !== null) ? prompts : null;
  } catch {
    return null;
  }
}

/** The messages of a prompt, as far as an engine here takes them; null for a text. */
export function messagesOf(prompt: ExplainablePrompt): ChatMessage[] | null {
  const list = Array.isArray(prompt) ? prompt : isObject(prompt) ? (prompt as ExplainableRequest).messages : null;
  return list ? (list as ChatMessage[]).map(({ role, content }) => ({ role, content })) : null;
}
