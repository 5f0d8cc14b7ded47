/** The conversation in memory: turns of a question and its answer. Nothing here is stored or sent anywhere. */
import { type Signal, signal } from '@preact/signals';
import type { AnswerStats, ChatMessage } from '../state/engine';
import type { Problem } from '../state/problem';
import type { Block } from './markdown';
import { renderBlocks } from './markdown';

export type AnswerStatus =
  /** For the model to load, or for the first words. */
  | 'waiting'
  | 'streaming'
  | 'done'
  /** By the visitor; what was written stays. */
  | 'stopped'
  | 'failed';

export interface Answer {
  readonly status: AnswerStatus;
  readonly text: string;
  readonly blocks: readonly Block[];
  readonly problem: Problem | null;
  readonly stats: AnswerStats | null;
}

export const NEW_ANSWER: Answer = { status: 'waiting', text: '', blocks: [], problem: null, stats: null };

export interface Turn {
  readonly id: number;
  readonly question: string;
  readonly answer: Signal<Answer>;
}

let nextId = 1;

export function newTurn(question: string): Turn {
  return { id: nextId++, question, answer: signal(NEW_ANSWER) };
}

/** Changes part of a turn's answer; its blocks always follow its text. */
export function updateAnswer(turn: Turn, change: Partial<Omit<Answer, 'blocks'>>): void {
  const before = turn.answer.peek();
  const text = change.text ?? before.text;
  const blocks = text === before.text ? before.blocks : renderBlocks(text, before.blocks);
  turn.answer.value = { ...before, ...change, blocks };
}

/**
 * The messages that lead to an answer of the last turn. Earlier turns without an answer are left out: templates want
 * questions and answers to alternate, and a question that failed was not part of the talk.
 */
export function toMessages(turns: readonly Turn[], systemPrompt: string): ChatMessage[] {
  const messages: ChatMessage[] = [];
  if (systemPrompt.trim() !== '') messages.push({ role: 'system', content: systemPrompt });
  turns.forEach((turn, index) => {
    const isLast = index === turns.length - 1;
    const { text } = turn.answer.peek();
    if (!isLast && text === '') return;
    messages.push({ role: 'user', content: turn.question });
    if (!isLast) messages.push({ role: 'assistant', content: text });
  });
  return messages;
}
