/**
 * One request can have several answers: putting them together.
 */

import type { Generation } from './generation.js';
import type { FinishedEvent } from './protocol.js';
import type { FinishReason, Timings } from './types.js';

/** What the answers of a request cost together. */
export type Totals = Pick<FinishedEvent, 'usage' | 'timings' | 'cache'>;

/** All answers of a request. */
export interface Answers extends Totals {
  /** By index. */
  choices: { text: string; reason: FinishReason }[];
}

/** Reads a generation to its end. */
export async function collect(generation: Generation): Promise<Answers> {
  const texts = new Array<string>(generation.numChoices).fill('');
  const finishes: FinishedEvent[] = [];
  while (finishes.length < generation.numChoices) {
    const event = await generation.next();
    if (event.kind === 'text') texts[event.choice] += event.text;
    else if (event.kind === 'finished') finishes.push(event);
  }
  finishes.sort((a, b) => a.choice - b.choice);
  return {
    choices: finishes.map(({ choice, reason }) => ({ text: texts[choice] ?? '', reason })),
    ...combine(finishes),
  };
}

/** The totals of at least one complete answer: the prompt counts once, and was computed by the one that reused least. */
export function combine(finishes: readonly FinishedEvent[]): Totals {
  const first = finishes.reduce((a, b) => (b.cache.read_tokens < a.cache.read_tokens ? b : a));
  const { usage, timings, cache } = first;
  if (finishes.length === 1) return { usage, timings, cache };
  const completion_tokens = sum(finishes.map((finish) => finish.usage.completion_tokens));
  const cached_tokens = Math.min(...finishes.map((finish) => finish.usage.prompt_tokens_details.cached_tokens));
  return {
    usage: {
      prompt_tokens: usage.prompt_tokens,
      completion_tokens,
      total_tokens: usage.prompt_tokens + completion_tokens,
      prompt_tokens_details: { cached_tokens },
    },
    timings: combineTimings(
      finishes.map((finish) => finish.timings),
      timings,
    ),
    cache: { ...cache, written_tokens: sum(finishes.map((finish) => finish.cache.written_tokens)) },
  };
}

function combineTimings(all: readonly Timings[], first: Timings): Timings {
  const known = (name: 'tpot_ms' | 'decode_tokens_per_s'): number[] =>
    all.map((timings) => timings[name]).filter((value) => value !== null);
  const [tpots, speeds] = [known('tpot_ms'), known('decode_tokens_per_s')];
  return {
    queue_ms: Math.min(...all.map((timings) => timings.queue_ms)),
    ttft_ms: Math.min(...all.map((timings) => timings.ttft_ms)),
    tpot_ms: tpots.length === 0 ? null : sum(tpots) / tpots.length,
    prefill_tokens_per_s: first.prefill_tokens_per_s,
    decode_tokens_per_s: speeds.length === 0 ? null : sum(speeds),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
