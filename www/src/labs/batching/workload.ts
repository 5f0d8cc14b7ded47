/** The workload of the sliders: the same requests whether they are simulated or sent. */
import type { SimulatedClass, SimulatedLengths, SimulationParams } from 'pagewise';
import { MODE_OPTIONS, type ModeName } from './modes';

/** Where it runs: on this device, or on a machine that is only described. */
export type Place = 'live' | 'integrated' | 'server';

/** What the sliders say. */
export interface BatchingInput {
  readonly place: Place;
  readonly numRequests: number;
  /** Requests per second; 0 for all at once. */
  readonly perS: number;
  /** Share of the requests that bring a long prompt, 0 to 1. */
  readonly longShare: number;
  /** Requests that run at once. */
  readonly slots: number;
  /** Tokens of a step, at most: a prompt's longer than that are cut into chunks. */
  readonly chunkTokens: number;
}

/** Lengths that suit a place: a page's model is small, a server's is not. */
interface Scale {
  readonly shortPrompt: number;
  readonly longPrompt: number;
  readonly answer: number;
  readonly contextLength: number;
  readonly kvTokens: number;
}

const SERVER: Scale = { shortPrompt: 120, longPrompt: 3000, answer: 180, contextLength: 16_384, kvTokens: 420_000 };
const INTEGRATED: Scale = { shortPrompt: 60, longPrompt: 800, answer: 80, contextLength: 4096, kvTokens: 32_768 };

/** What is sent to a live model of so much context: a long prompt is half of it, but never very long. */
export function liveScale(contextLength: number, isSoftware: boolean): Scale {
  const most = isSoftware ? 96 : 1024;
  const longPrompt = Math.min(most, Math.floor(contextLength / 2));
  const answer = isSoftware ? 6 : 48;
  return {
    shortPrompt: Math.max(8, Math.floor(longPrompt / 12)),
    longPrompt,
    answer,
    contextLength,
    kvTokens: contextLength,
  };
}

/** What the simulator is asked for a mode. The workload does not depend on the mode. */
export function simulationOf(
  input: BatchingInput,
  mode: ModeName,
  scale: Scale = scaleOf(input.place),
): SimulationParams {
  const { numRequests, perS, longShare, slots, chunkTokens, place } = input;
  const options = MODE_OPTIONS[mode];
  return {
    ...options,
    workload: {
      seed: 7,
      numRequests,
      arrivals: perS > 0 ? { kind: 'poisson', perS } : { kind: 'at_once' },
      classes: classesOf(longShare, scale),
      sharedPrefixTokens: 0,
    },
    machine: place === 'server' ? 'server' : 'integrated',
    maxRunning: slots,
    // Prompts that are not cut need a step that takes the longest.
    budgetTokens: options.chunkedPrefill ? chunkTokens : scale.contextLength,
    contextLength: scale.contextLength,
    kvTokens: scale.kvTokens,
    numTraced: TRACED_REQUESTS,
  };
}

/** Rows of the timeline. */
export const TRACED_REQUESTS = 24;

function scaleOf(place: Place): Scale {
  return place === 'server' ? SERVER : INTEGRATED;
}

function classesOf(longShare: number, { shortPrompt, longPrompt, answer }: Scale): SimulatedClass[] {
  const lengths = (mean: number, spread: number, max: number): SimulatedLengths => ({ mean, spread, min: 2, max });
  const answers = lengths(answer, 0.8, 3 * answer);
  const short = {
    name: 'short',
    share: 1 - longShare,
    prompt: lengths(shortPrompt, 0.6, 3 * shortPrompt),
    answer: answers,
    priority: 0,
  };
  const long = {
    name: 'long',
    share: longShare,
    prompt: lengths(longPrompt, 0.2, longPrompt),
    answer: answers,
    priority: 0,
  };
  return [short, long].filter(({ share }) => share > 0);
}
