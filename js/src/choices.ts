/**
 * One request can have several answers: putting them together.
 */

import type { Generation, GenerationEvent } from './generation.js';
import type { FinishedEvent } from './protocol.js';
import type { FinishReason, Timings, TokenLogprob, ToolCall, ToolCallError } from './types.js';

/** What the answers of a request cost together. */
export type Totals = Pick<FinishedEvent, 'usage' | 'timings' | 'cache'>;

/** All answers of a request. */
export interface Answers extends Totals {
  /** By index. */
  choices: AnswerChoice[];
}

/** One answer. */
export interface AnswerChoice {
  text: string;
  reason: FinishReason;
  /** If they were asked for. */
  logprobs?: TokenLogprob[];
  /** Those that are complete. */
  calls: ToolCall[];
  /** The first of what should have been calls. */
  error?: ToolCallError;
}

/** An answer as it grows. */
interface Growing {
  text: string;
  logprobs: TokenLogprob[];
  /** By their index. */
  calls: Map<number, ToolCall>;
  error?: ToolCallError;
}

/** Reads a generation to its end. */
export async function collect(generation: Generation): Promise<Answers> {
  const growing = Array.from(
    { length: generation.numChoices },
    (): Growing => ({ text: '', logprobs: [], calls: new Map() }),
  );
  const finishes: FinishedEvent[] = [];
  while (finishes.length < generation.numChoices) {
    const event = await generation.next();
    if (event.kind === 'finished') finishes.push(event);
    else if (event.kind !== 'progress') grow(growing[event.choice] as Growing, event);
  }
  finishes.sort((a, b) => a.choice - b.choice);
  return {
    choices: finishes.map(({ choice, reason }) => {
      const { calls, logprobs, ...others } = growing[choice] as Growing;
      const told = generation.hasLogprobs ? { logprobs } : {};
      return { ...others, ...told, calls: [...calls.values()], reason };
    }),
    ...combine(finishes),
  };
}

function grow(answer: Growing, event: Exclude<GenerationEvent, { kind: 'progress' | 'finished' }>): void {
  switch (event.kind) {
    case 'text':
      answer.text += event.text;
      answer.logprobs.push(...(event.logprobs ?? []));
      break;
    case 'call': {
      const { id, name } = event;
      answer.calls.set(event.index, { id, type: 'function', function: { name, arguments: '' } });
      break;
    }
    case 'arguments': {
      const call = answer.calls.get(event.index);
      if (call !== undefined) call.function.arguments += event.text;
      break;
    }
    case 'malformed':
      answer.text += event.text;
      if (event.index !== null) answer.calls.delete(event.index);
      answer.error ??= { ...event.error, index: event.index };
  }
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
