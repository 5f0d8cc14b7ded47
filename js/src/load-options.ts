/**
 * What an engine is built with, checked.
 */

import { PagewiseError } from './errors.js';
import { bad, inRange, isPlainObject, show } from './fields.js';
import type { EngineOptions } from './protocol.js';
import type { LoadOptions, ToolFormat } from './types.js';

/** No limit is larger: the engine counts with 32 bits. */
const MAX_COUNT = 2 ** 32 - 1;
const MAX_STEP_MS = 60_000;
const TOOL_FORMATS: readonly ToolFormat[] = ['hermes', 'llama3', 'mistral', 'functiongemma', 'gemma'];
const BATCHINGS: readonly unknown[] = ['continuous', 'static', 'none'];

/** Milliseconds that a submission to the GPU should take, while the page is visible and while it is not; null for no limit. */
export interface StepTargets {
  /** While it is visible. */
  visible: number | null;
  /** While it is hidden. */
  hidden: number | null;
}

const STEP_TARGETS: StepTargets = { visible: 30, hidden: 200 };

/** The part of a load's options that the engine gets. */
export function checkEngineOptions(given: LoadOptions): EngineOptions {
  const { contextLength, maxGpuBytes, kv = 'f16', maxRunning, maxQueued, maxStepsAhead, maxStepTokens } = given;
  const { batching, chunkedPrefill } = given;
  if (kv !== 'f16' && kv !== 'f32') throw bad(`kv: 'f16' or 'f32' is needed, ${show(kv)} given`);
  const { autotune = true, precision = 'full' } = given;
  if (precision !== 'full' && precision !== 'fast') {
    throw bad(`precision: 'full' or 'fast' is needed, ${show(precision)} given`);
  }
  if (precision === 'fast' && !autotune)
    throw bad("precision 'fast' needs autotune: what is faster has to be measured");
  const options: EngineOptions = { kv, autotune, precision };
  const { toolFormat } = given;
  if (toolFormat !== undefined) {
    if (!TOOL_FORMATS.includes(toolFormat)) {
      throw bad(`toolFormat: one of ${TOOL_FORMATS.map(show).join(', ')} is needed, ${show(toolFormat)} given`);
    }
    options.toolFormat = toolFormat;
  }
  const numbers = { contextLength, maxGpuBytes, maxRunning, maxQueued, maxStepsAhead, maxStepTokens };
  for (const [name, value] of Object.entries(numbers)) {
    if (value === undefined) continue;
    const isCount = name !== 'contextLength' && name !== 'maxGpuBytes';
    if (!Number.isSafeInteger(value) || value < 1 || (isCount && value > MAX_COUNT)) {
      throw new PagewiseError('bad_request', `${name}: a positive integer is needed, ${show(value)} given`);
    }
    options[name as keyof typeof numbers] = value;
  }
  if (batching !== undefined) {
    if (!BATCHINGS.includes(batching)) {
      throw bad(`batching: ${BATCHINGS.map(show).join(', ')} are supported, ${show(batching)} given`);
    }
    options.batching = batching;
  }
  if (chunkedPrefill !== undefined) options.chunkedPrefill = chunkedPrefill;
  return options;
}

/** Checks `stepTargetMs`. */
export function checkStepTargets(given: LoadOptions['stepTargetMs']): StepTargets {
  if (given === undefined) return STEP_TARGETS;
  if (!isPlainObject(given)) {
    const ms = checkTarget('stepTargetMs', given);
    return { visible: ms, hidden: ms };
  }
  const targets = { ...STEP_TARGETS };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(targets, name))
      throw bad(`stepTargetMs.${name} is not supported; supported are visible, hidden`);
    targets[name as keyof StepTargets] = checkTarget(`stepTargetMs.${name}`, value);
  }
  return targets;
}

function checkTarget(name: string, value: unknown): number | null {
  return value === null ? null : inRange(name, value, 0, MAX_STEP_MS, true);
}

/** A document, as far as it says whether it is seen. */
export type PageVisibility = Pick<Document, 'visibilityState' | 'addEventListener' | 'removeEventListener'>;

/**
 * Calls `set` with the target now, and whenever the page's visibility changes it; returns a function that ends this.
 * Without a page (in a worker), it counts as visible.
 */
export function followVisibility(
  { visible, hidden }: StepTargets,
  set: (ms: number | null) => void,
  page: PageVisibility | undefined = globalThis.document,
): () => void {
  let current: number | null | undefined;
  const update = (): void => {
    const ms = page?.visibilityState === 'hidden' ? hidden : visible;
    if (ms === current) return;
    current = ms;
    set(ms);
  };
  update();
  if (page === undefined || visible === hidden) return () => undefined;
  page.addEventListener('visibilitychange', update);
  return () => page.removeEventListener('visibilitychange', update);
}
