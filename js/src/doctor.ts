/**
 * The prompt doctor: why a prompt cannot reuse what was computed for an earlier one. It needs no engine and no GPU, and
 * works on requests to hosted APIs as well: they cache prefixes too.
 */

import { callModule, toJson } from './module.js';

/** A request's prompt, as far as the doctor looks at it; any other field is ignored. */
export interface ExplainableRequest {
  /** The conversation, in OpenAI's shape; content parts, tool calls and thinking texts included. */
  messages?: readonly object[];
  /** Instead of messages: a text. */
  prompt?: string;
  /** Anthropic's place of the system prompt. */
  system?: string | readonly object[] | null;
  /** The tool list; it is taken to stand in front of everything, where hosted APIs put it. */
  tools?: readonly object[] | null;
  /** Name of the model. */
  model?: string | null;
  /** Any name of the chat template: another name means another prompt. */
  template?: string | null;
  /** Tokens of each message; with them in both requests, sizes are in tokens. Tools, in front, may be counted or not. */
  token_counts?: readonly number[];
}

/** A text, a list of messages or a request. */
export type ExplainablePrompt = string | readonly object[] | ExplainableRequest;

/**
 * Why a prompt does not continue an earlier one. Of `identical`, `appended`, `shortened` and `new_conversation` nobody is
 * to blame.
 */
export type MissCause =
  | 'identical'
  | 'appended'
  | 'shortened'
  | 'new_conversation'
  | 'timestamp'
  | 'uuid'
  | 'identifier'
  | 'counter'
  | 'whitespace'
  | 'order'
  | 'model_changed'
  | 'template_changed'
  | 'tools_changed'
  | 'thinking_stripped'
  | 'user_text'
  | 'edited'
  | 'deleted'
  | 'inserted'
  | 'reordered'
  | 'history_rewritten';

/** Where two prompts part. */
export interface MissPlace {
  /** The kind of place; `text` is a plain text or a request's `system`. */
  part: 'model' | 'template' | 'tools' | 'message' | 'text';
  /** Index of the message in the next prompt. */
  message: number | null;
  /** The message's role. */
  role: string | null;
  /** Characters (code points) of this part that are equal in front of the first difference. */
  character: number;
}

/** One prompt's text around the difference, shortened. */
export interface MissSide {
  /** What both have. */
  before: string;
  /** What differs. */
  text: string;
  /** What follows. */
  after: string;
}

/** Sizes of the two prompts, in characters or tokens. */
export interface MissSize {
  /** What is counted. Characters do not include what a template adds. */
  unit: 'characters' | 'tokens';
  /** Of the previous prompt. */
  previous: number;
  /** Of the next prompt. */
  next: number;
  /** What both have at their fronts: as much as a cache can reuse. */
  shared: number;
  /** What was computed for the previous prompt and cannot be reused. */
  lost: number;
}

/** What the prompt doctor found. */
export interface MissExplanation {
  /** Whether the prompts part before one of them ends. */
  miss: boolean;
  /** Why. */
  cause: MissCause;
  /** Further causes behind it in the same text: they would be next. */
  also: MissCause[];
  /** Where; null when they do not part. */
  place: MissPlace | null;
  /** The previous prompt there. */
  previous: MissSide | null;
  /** The next prompt there. */
  next: MissSide | null;
  /** Sizes. */
  size: MissSize;
  /** `lost`: of the previous prompt; `reused`: of the next one. From 0 to 1. */
  fraction: { lost: number; reused: number };
  /** What was found, in words. */
  summary: string;
  /** What to move or to change; null when there is nothing to do. */
  advice: string | null;
}

/**
 * Why `next` does not continue `previous`: where they part, what kind of difference that is, what it costs and what to
 * move. Rejects with `bad_request` for what is no prompt.
 */
export async function explainMiss(previous: ExplainablePrompt, next: ExplainablePrompt): Promise<MissExplanation> {
  const [a, b] = [toJson(previous, 'the previous prompt'), toJson(next, 'the next prompt')];
  return callModule((module) => module.explainMiss(a, b));
}
