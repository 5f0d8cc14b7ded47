/**
 * Where passages stand in a prompt, and what that does to the cache: the same questions with the same passages, sent in two
 * ways one after the other. What to expect follows from the prompts' token ids alone.
 */
import type { ChatMessage, Engine } from 'pagewise';
import { measureTokens } from '../../documents/context';
import { passagesText, type SourceRecord, withSources } from '../../documents/source';
import { splitBlocks } from '../../documents/split';
import { type Expectation, expect } from '../cache/expectation';
import { Writer } from '../cache/writer';
import { ask, type Measured } from '../shared/measure';
import { encodePrompt, type PromptEngine, piecesOf, renderPrompt } from '../shared/prompt';

export const EXPERIMENTS = ['questions', 'turns'] as const;
export type ExperimentId = (typeof EXPERIMENTS)[number];

/** A way to put passages into prompts; of each experiment, the one that costs first. */
export type Order = 'first' | 'after' | 'moved' | 'kept';
export const ORDERS: Readonly<Record<ExperimentId, readonly [Order, Order]>> = {
  questions: ['first', 'after'],
  turns: ['moved', 'kept'],
};

/** What an experiment needs of an engine. */
export type OrderEngine = PromptEngine & Pick<Engine, 'chat' | 'info'>;

/** A question and the passages that were found for it. */
export interface Asked {
  readonly question: string;
  readonly sources: readonly SourceRecord[];
}

/** One request of one order, before and after it was sent. */
export interface OrderRequest {
  readonly asked: Asked;
  readonly messages: readonly ChatMessage[];
  readonly ids: readonly number[];
  readonly pieces: readonly string[];
  /** Position of the first token of its own passages. */
  readonly passagesAt: number;
  readonly expected: Expectation;
  /** Null until it was answered. */
  readonly measured: Measured | null;
}

export interface OrderRun {
  readonly order: Order;
  /** Of the cache: every run begins cold. */
  readonly salt: string;
  readonly requests: readonly OrderRequest[];
}

/** Shares of a prompt's tokens. */
const RULES_SHARE = 0.45;
const PASSAGES_SHARE = 0.35;
const ANSWER_SHARE = 0.06;
/** The token of an answer that was drawn last is not computed: with one, prompts alone decide what is reused. */
const ANSWER_TOKENS = 1;

/** The messages of all requests in one order. `rules` and `answers` are what stays the same. */
export function messagesOf(
  order: Order,
  asked: readonly Asked[],
  rules: string,
  answers: readonly string[],
): ChatMessage[][] {
  const system = (content: string): ChatMessage => ({ role: 'system', content });
  const user = (content: string): ChatMessage => ({ role: 'user', content });
  const turns = (upTo: number, keep: boolean): ChatMessage[] =>
    asked
      .slice(0, upTo)
      .flatMap(({ question, sources }, index) => [
        user(keep ? withSources(question, sources) : question),
        { role: 'assistant', content: answers[index] ?? '' },
      ]);
  return asked.map(({ question, sources }, index) => {
    if (order === 'first') return [system(`${passagesText(sources)}\n\n${rules}`), user(question)];
    const last = user(withSources(question, sources));
    return order === 'after' ? [system(rules), last] : [system(rules), ...turns(index, order === 'kept'), last];
  });
}

let numRuns = 0;

/** Prepares both orders of an experiment, with prompts of about `tokens` tokens. Nothing is computed. */
export async function prepare(
  engine: OrderEngine,
  id: ExperimentId,
  asked: readonly Asked[],
  tokens: number,
): Promise<OrderRun[]> {
  const writer = await Writer.for(engine);
  // In a conversation the last prompt has the passages of all turns.
  const parts = id === 'turns' ? asked.length : 1;
  const fitted = await Promise.all(asked.map((one) => cutTo(engine, one, (tokens * PASSAGES_SHARE) / parts)));
  const rules = writer.text('rules', tokens * RULES_SHARE);
  const answers = asked.map((_, index) => writer.text('answer', tokens * ANSWER_SHARE, index * 10));
  numRuns += 1;
  const runs: OrderRun[] = [];
  for (const order of ORDERS[id]) {
    const requests: OrderRequest[] = [];
    for (const [index, messages] of messagesOf(order, fitted, rules, answers).entries()) {
      const { text, ids } = await renderPrompt(engine, messages);
      const expected = expect(
        ids,
        requests.map((earlier) => earlier.ids),
      );
      const one = fitted[index] ?? { question: '', sources: [] };
      const before = text.slice(0, Math.max(0, text.lastIndexOf(passagesText(one.sources))));
      const passagesAt = (await encodePrompt(engine, before)).length;
      const pieces = await piecesOf(engine, ids);
      requests.push({ asked: one, messages, ids, pieces, passagesAt, expected, measured: null });
    }
    runs.push({ order, salt: `documents ${numRuns} ${order} ${Date.now()}`, requests });
  }
  return runs;
}

/** Passages cut to a size, so that an experiment is as long as was asked for whatever is in the library. */
async function cutTo(engine: OrderEngine, { question, sources }: Asked, tokens: number): Promise<Asked> {
  const limit = Math.max(8, Math.floor(tokens / Math.max(1, sources.length)));
  const measure = measureTokens(engine);
  const cut = sources.map(async (source): Promise<SourceRecord> => {
    const [first] = await splitBlocks([{ kind: 'text', text: source.text, page: null }], { limit, measure });
    return { ...source, text: first?.text ?? source.text };
  });
  return { question, sources: await Promise.all(cut) };
}

/** Sends the requests of all runs; `onChange` gets them whenever there is more to show. */
export async function execute(
  engine: OrderEngine,
  prepared: readonly OrderRun[],
  onChange: (runs: readonly OrderRun[]) => void,
  signal: AbortSignal,
): Promise<readonly OrderRun[]> {
  let runs = prepared;
  // The first request after a load is slower than all others; it should not be one that is compared.
  await ask(engine, [{ role: 'user', content: 'Hi' }], { maxTokens: 1, cache: { enabled: false }, signal });
  for (const [at, { salt, order, requests }] of prepared.entries()) {
    for (const [index, { messages }] of requests.entries()) {
      const measured = await ask(engine, messages, { maxTokens: ANSWER_TOKENS, cache: { salt, name: order }, signal });
      runs = runs.map((run, other) =>
        other === at
          ? { ...run, requests: run.requests.map((one, i) => (i === index ? { ...one, measured } : one)) }
          : run,
      );
      onChange(runs);
    }
  }
  return runs;
}

/** Why questions cannot show what an order does to the cache. */
export type Unfit = 'few' | 'same';

/**
 * Whether the questions can show it: two are needed that found something, and where only the passages' place differs between
 * the prompts, they need other passages. Null if they can.
 */
export function unfitFor(id: ExperimentId, asked: readonly Asked[]): Unfit | null {
  if (asked.length < 2) return 'few';
  const lists = new Set(asked.map(({ sources }) => sources.map(({ passage }) => passage).join(' ')));
  return id === 'questions' && lists.size < 2 ? 'same' : null;
}

/** What was measured: whether the second order reused more than the first. */
export function isBetter([worse, better]: readonly OrderRun[]): boolean {
  return !!worse && !!better && totalsOf(better).cached > totalsOf(worse).cached;
}

/** Sums of one order: what was sent, what of it was reused, and the mean time to the first token after the first request. */
export function totalsOf({ requests }: OrderRun): { prompt: number; cached: number; laterTtftMs: number | null } {
  const measured = requests.flatMap((request) => (request.measured ? [request.measured] : []));
  const later = measured.slice(1);
  return {
    prompt: measured.reduce((sum, one) => sum + one.promptTokens, 0),
    cached: measured.reduce((sum, one) => sum + one.cachedTokens, 0),
    laterTtftMs: later.length > 0 ? later.reduce((sum, one) => sum + one.ttftMs, 0) / later.length : null,
  };
}
