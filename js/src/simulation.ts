/**
 * The simulator: the engine's own scheduler, block manager and prefix cache serving a workload on a machine that is only
 * described. It needs no GPU; the same parameters give the same result everywhere. See docs/scheduling.md.
 */

import { PagewiseError } from './errors.js';
import { bad, isPlainObject, show } from './fields.js';
import type { HistogramSummary } from './metrics-types.js';
import { callModule, toJson } from './module.js';
import type { Batching } from './types.js';

/** When requests arrive: all at the start, independently of each other, or `size` at a time. */
export type SimulatedArrivals =
  | { kind: 'at_once' }
  | { kind: 'poisson'; perS: number }
  | { kind: 'bursts'; perS: number; size: number };

/** How many tokens: log-normal, rounded, within limits. */
export interface SimulatedLengths {
  /** Mean. */
  mean: number;
  /** Deviation of the logarithm; 0 makes all the mean. */
  spread: number;
  /** The fewest, at least 1. */
  min: number;
  /** The most. */
  max: number;
}

/** One kind of request. */
export interface SimulatedClass {
  /** What it is called. */
  name: string;
  /** Its share of the requests, relative to the others'. */
  share: number;
  /** Tokens of a prompt, without the shared prefix. */
  prompt: SimulatedLengths;
  /** Tokens of an answer. */
  answer: SimulatedLengths;
  /** From -1000 to 1000. */
  priority: number;
}

/** What is asked. */
export interface SimulatedWorkload {
  /** Equal seeds give equal workloads. */
  seed: number;
  /** How many requests, 10,000 at most. */
  numRequests: number;
  /** When they arrive. */
  arrivals: SimulatedArrivals;
  /** What they are. */
  classes: readonly SimulatedClass[];
  /** Tokens that all prompts begin with. */
  sharedPrefixTokens: number;
}

/** A model on a device. Rates are what is reached, not what a data sheet says. */
export interface SimulatedCost {
  /** Of every step, whatever its size, in milliseconds. */
  overheadMs: number;
  /** Bytes of weights that a step reads. */
  weightBytes: number;
  /** Bytes of keys and values that a token of context adds. */
  kvBytesPerToken: number;
  /** Weights that a token is multiplied with. */
  parameters: number;
  /** Operations of attention per token and position that it attends to. */
  attentionFlopsPerPair: number;
  /** Bytes per second from the device's memory. */
  bytesPerS: number;
  /** Operations per second. */
  flopsPerS: number;
}

/**
 * Machines that are described already: SmolLM2 135M on a software adapter, Llama 3.2 1B on a laptop's integrated GPU,
 * Llama 3.1 8B on an H100, OPT 13B on an A100 of 40 GB.
 */
export type SimulatedMachine = 'software' | 'integrated' | 'server' | 'a100_opt13b';

/** A workload, a machine, and how the engine is set. */
export interface SimulationParams {
  /** What is asked. */
  workload?: SimulatedWorkload;
  /** Default `server`. */
  machine?: SimulatedMachine;
  /** What a step takes, in the place of `machine`. */
  cost?: SimulatedCost;
  /** Tokens that the KV pool has room for. */
  kvTokens?: number;
  /** Tokens that a prompt and its answer may have. */
  contextLength?: number;
  /** Sequences that run at once, at most. */
  maxRunning?: number;
  /** Tokens of a step, at most. */
  budgetTokens?: number;
  /** As of `Engine.load`. */
  batching?: Batching;
  /** As of `Engine.load`. */
  chunkedPrefill?: boolean;
  /** Milliseconds that a step should take; default: no limit. */
  stepTargetMs?: number | null;
  /** Whether prompts that begin alike share what is computed. */
  prefixCache?: boolean;
  /** Steps tell what they computed of so many requests, those that arrive first. Default 0. */
  numTraced?: number;
}

/** A distribution: each value is one of those that were measured. */
export interface SimulatedPercentiles
  extends Record<'p50' | 'p95' | 'p99' | 'max', NonNullable<HistogramSummary['p50']>> {
  /** The mean. */
  mean: number;
}

/** How a workload, or a class of it, was served. */
export interface SimulationReport {
  /** Requests; all were completed. */
  numRequests: number;
  /** From the start to the last token of the whole workload. */
  makespanMs: number;
  /** Tokens of the prompts. */
  promptTokens: number;
  /** Of these, what the prefix cache had. */
  cachedTokens: number;
  /** Tokens of the answers. */
  generatedTokens: number;
  /** Tokens of the answers per second of the makespan. */
  generatedTokensPerS: number;
  /** Tokens of prompts and answers per second of the makespan. */
  totalTokensPerS: number;
  /** Steps. */
  numSteps: number;
  /** Share of the slots that computed, mean over the time that steps took. */
  occupancy: number;
  /** Times that a running request had to give up its blocks. */
  numPreemptions: number;
  /** From arrival to the start of the first step. */
  queueMs: SimulatedPercentiles;
  /** From arrival to the first token. */
  ttftMs: SimulatedPercentiles;
  /** From each token to the next. */
  interTokenMs: SimulatedPercentiles;
  /** From arrival to the last token. */
  endToEndMs: SimulatedPercentiles;
}

/** A request that was served; times are from the start of the workload. */
export interface SimulatedRequest {
  /** Index of its class. */
  class: number;
  /** When it arrived. */
  atMs: number;
  /** When its first step began. */
  startMs: number;
  /** When its first token was there. */
  firstTokenMs: number;
  /** When its last token was there. */
  endMs: number;
  /** Tokens of its prompt. */
  numPrompt: number;
  /** Of these, what the prefix cache had. */
  numCached: number;
  /** Tokens of its answer. */
  numGenerated: number;
}

/** A step. */
export interface SimulatedStep {
  /** When it began. */
  startMs: number;
  /** When it ended. */
  endMs: number;
  /** Tokens that it computed. */
  numTokens: number;
  /** Requests that it computed on. */
  numSequences: number;
  /** Requests that waited meanwhile. */
  numWaiting: number;
  /** Of the traced requests, by their index: positions from `start` up to `end`; those below `numPrompt` are prefill. */
  parts: { request: number; start: number; end: number; numPrompt: number; samples: boolean }[];
  /** Traced requests that had to give up their blocks before it. */
  preempted: number[];
}

/** What became of a workload. */
export interface SimulationResult {
  /** The figures of all requests. */
  report: SimulationReport;
  /** Of each class. */
  classes: SimulationReport[];
  /** In order of arrival. */
  requests: SimulatedRequest[];
  /** Every step. */
  steps: SimulatedStep[];
}

/**
 * Serves a workload on a machine that does not exist. Without parameters: 200 mixed requests, four a second, to Llama 3.1 8B
 * on an H100. It computes in this thread, for about a second where there are thousands of requests.
 *
 * Rejects with `bad_request` for what is unknown or out of range, `context_too_long` when a request can never fit.
 */
export async function simulate(params: SimulationParams = {}): Promise<SimulationResult> {
  if (!isPlainObject(params)) throw bad(`simulate: an object is needed, ${show(params)} given`);
  const json = toJson(rename(params, toSnake), 'params');
  try {
    return await callModule((module) => module.simulate(json));
  } catch (error) {
    if (!(error instanceof PagewiseError)) throw error;
    // The simulator calls its fields as files write them.
    throw new PagewiseError(error.code, error.message.replace(/\b[a-z]+(?:_[a-z]+)+\b/g, toCamel), { cause: error });
  }
}

const toSnake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const toCamel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** The same with every field's name changed, and without those that are undefined. */
function rename(value: unknown, change: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((part) => rename(part, change));
  if (!isPlainObject(value)) return value;
  const fields = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(fields.map(([name, part]) => [change(name), rename(part, change)]));
}
