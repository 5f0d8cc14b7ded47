/**
 * Finds the passages for a question and puts them where the cache is not hurt: into the last turn. Earlier turns keep what they
 * had, a passage keeps its number, and of one that an earlier turn already brings the number alone is sent.
 */
import type { ChatMessage, LoadedModel } from '../state/engine';
import type { Found } from './library';
import { passagesText, type SourceRecord, toSource } from './source';

/** Passages that are looked at, to have enough that fit. */
const NUM_CANDIDATES = 24;
/** Most of the context that passages take. */
const CONTEXT_SHARE = 0.5;
/** Most of the context that is kept for the answer. */
const ANSWER_SHARE = 0.25;
/** A question of fewer words is about the one before, too. */
const SHORT_QUESTION = 24;

export interface Retrieval {
  readonly search: (question: string, limit: number) => Promise<readonly Found[]>;
  readonly question: string;
  /** Questions before it in this branch, and the passages that they brought. */
  readonly earlier: readonly { readonly text: string; readonly sources: readonly SourceRecord[] }[];
  /** Whether all earlier turns are sent: what they bring is then not sent again. */
  readonly keepsTurns: boolean;
  readonly numPassages: number;
  /** Tokens that passages may take. */
  readonly room: number;
  /** Tokens of a text. */
  readonly count: (text: string) => Promise<number>;
}

/** The passages to send with a question, at most as many and as large as allowed, numbered. */
export async function retrieve(retrieval: Retrieval): Promise<SourceRecord[]> {
  const { earlier, question, keepsTurns, numPassages, room, count } = retrieval;
  const found = await retrieval.search(queryOf(question, earlier.at(-1)?.text), NUM_CANDIDATES);
  const known = new Map(earlier.flatMap(({ sources }) => sources.map((source) => [source.passage, source] as const)));
  let nextNumber = Math.max(0, ...[...known.values()].map(({ number }) => number)) + 1;
  const chosen: SourceRecord[] = [];
  for (const { passage } of found) {
    if (chosen.length >= numPassages) break;
    const before = known.get(passage.id);
    const source: SourceRecord = toSource(passage, before?.number ?? nextNumber);
    const named: SourceRecord = before && keepsTurns ? { ...source, isAbove: true } : source;
    // Counted together: what stands around the passages counts too.
    if ((await count(passagesText([...chosen, named]))) > room) continue;
    chosen.push(named);
    if (!before) nextNumber += 1;
  }
  return chosen;
}

/** What is searched for: a short question is searched together with the one before. */
function queryOf(question: string, before: string | undefined): string {
  const isShort = question.trim().length < SHORT_QUESTION;
  return isShort && before !== undefined ? `${question}\n${before}` : question;
}

/** Tokens that passages may take beside a prompt, so that an answer still fits. */
export function roomFor(promptTokens: number, contextLength: number, maxTokens: number): number {
  const answer = Math.min(maxTokens, Math.floor(contextLength * ANSWER_SHARE));
  return Math.max(0, Math.min(Math.floor(contextLength * CONTEXT_SHARE), contextLength - answer - promptTokens));
}

/** Tokens of messages without passages, by a model; those that do not fit have a length as well. */
export async function promptTokens(model: LoadedModel, messages: readonly ChatMessage[]): Promise<number> {
  return (await model.count(messages)).promptTokens;
}
