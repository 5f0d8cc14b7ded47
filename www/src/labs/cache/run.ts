/** Runs an experiment: says what to expect, sends its requests one after the other, and measures. */
import type { ChatMessage, Engine } from 'pagewise';
import { ask, type Measured } from '../shared/measure';
import { encodePrompt, type PromptEngine, piecesOf, renderPrompt } from '../shared/prompt';
import { BLOCK_SIZE } from '../shared/token-runs';
import { type Expectation, expect } from './expectation';
import { type ExperimentId, requestsOf } from './experiments';
import { blocksOf } from './room';
import { Writer } from './writer';

/** What an experiment needs of an engine. */
export type ExperimentEngine = PromptEngine & Pick<Engine, 'chat' | 'info'>;

/** How the cache is used. */
export interface CacheSettings {
  readonly enabled: boolean;
  readonly ttlSeconds: number | null;
  readonly pin: boolean;
}

/** One request of an experiment, before and after it was sent. */
export interface ExperimentRequest {
  readonly messages: readonly ChatMessage[];
  readonly ids: readonly number[];
  readonly pieces: readonly string[];
  readonly expected: Expectation;
  /** Null until it was answered. */
  readonly measured: Measured | null;
  /** What the answer reads as, token by token. */
  readonly answerPieces: readonly string[];
}

/** An experiment, as far as it is. */
export interface ExperimentRun {
  readonly id: ExperimentId;
  readonly salt: string;
  readonly requests: readonly ExperimentRequest[];
  /** Blocks that all of it takes, and that the pool has. */
  readonly needed: number;
  readonly pool: number;
}

/** Tokens of an answer: enough to see that it goes on. */
const ANSWER_TOKENS = 6;

let numRuns = 0;

/** Prepares an experiment: renders and encodes its requests and says what to expect of each. Nothing is computed. */
export async function prepare(engine: ExperimentEngine, id: ExperimentId, tokens: number): Promise<ExperimentRun> {
  const writer = await Writer.for(engine);
  const lists = requestsOf(id, writer, tokens);
  const requests: ExperimentRequest[] = [];
  for (const messages of lists) {
    const { ids } = await renderPrompt(engine, messages);
    const expected = expect(
      ids,
      requests.map((earlier) => earlier.ids),
    );
    requests.push({ messages, ids, pieces: await piecesOf(engine, ids), expected, measured: null, answerPieces: [] });
  }
  numRuns += 1;
  // Under a salt of its own, so that every experiment begins cold and meets no conversation of the chat.
  const salt = `lab ${numRuns} ${Date.now()}`;
  const prompts = requests.map(({ ids }) => ids);
  return { id, salt, requests, needed: blocksOf(prompts, ANSWER_TOKENS), pool: poolBlocks(engine.info) };
}

/** Sends the requests of a prepared experiment; `onChange` gets it whenever there is more to show. */
export async function execute(
  engine: ExperimentEngine,
  prepared: ExperimentRun,
  settings: CacheSettings,
  onChange: (run: ExperimentRun) => void,
  signal: AbortSignal,
): Promise<ExperimentRun> {
  let run = prepared;
  // The first request after a load is slower than all others; it should not be one that is compared.
  await ask(engine, [{ role: 'user', content: 'Hi' }], { maxTokens: 1, cache: { enabled: false }, signal });
  const { enabled, ttlSeconds, pin } = settings;
  const cache = { enabled, pin, ttl_seconds: ttlSeconds, salt: run.salt, name: run.id };
  for (const [index, request] of run.requests.entries()) {
    const measured = await ask(engine, request.messages, { maxTokens: ANSWER_TOKENS, cache, signal });
    const answer = await encodePrompt(engine, measured.text);
    const answerPieces = await piecesOf(engine, answer.slice(0, measured.generatedTokens));
    run = replaceAt(run, index, { ...request, measured, answerPieces });
    onChange(run);
  }
  return run;
}

function replaceAt(run: ExperimentRun, index: number, request: ExperimentRequest): ExperimentRun {
  return { ...run, requests: run.requests.map((other, at) => (at === index ? request : other)) };
}

/** Blocks of the pool that keys and values of the whole context are in. */
export function poolBlocks({ contextLength }: { readonly contextLength: number }): number {
  return Math.floor(contextLength / BLOCK_SIZE);
}

/** Whether blocks have to be given up on the way. */
export function isTight({ needed, pool }: ExperimentRun): boolean {
  return needed > pool;
}

/** Whether what was measured is what was expected: in a pool that is too small, what could be reused is a limit. */
export function isAsExpected(run: ExperimentRun, { expected, measured }: ExperimentRequest): boolean {
  if (measured === null || measured.promptTokens !== expected.promptTokens) return false;
  return isTight(run)
    ? measured.cachedTokens <= expected.cachedTokens
    : measured.cachedTokens === expected.cachedTokens;
}

/** Milliseconds by which a request's first token came sooner than that of the first request, which was cold. */
export function savedMs(run: ExperimentRun, index: number): number | null {
  const [cold, warm] = [run.requests[0]?.measured, run.requests[index]?.measured];
  return index > 0 && cold && warm ? cold.ttftMs - warm.ttftMs : null;
}

/** Room for prompts: the answer and the template's own tokens take the rest. */
const roomOf = (contextLength: number): number => contextLength - 2 * ANSWER_TOKENS - 32;

/** Tokens for prompts of which two that share nothing have room side by side; for the service prompt once. */
export function sizeWithRoom(id: ExperimentId, contextLength: number): number {
  return Math.max(64, Math.floor(roomOf(contextLength) * (id === 'service' ? 0.85 : 0.42)));
}

/** The most tokens for the prompts of an experiment: each has to fit into the pool alone. */
export function sizeLimit(contextLength: number): number {
  return Math.max(64, Math.floor(roomOf(contextLength) * 0.9));
}
