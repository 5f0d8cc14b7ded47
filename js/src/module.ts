/**
 * The WebAssembly module for what needs neither an engine nor a GPU: started on first use, in the page or in a worker.
 */

import { isErrorRecord, PagewiseError } from './errors.js';

/** The functions of the module that compute at once. They throw `{code, message}`. */
export interface PureModule {
  /** See `explainMiss` of `doctor.ts`; both prompts as JSON. */
  explainMiss(previous: string, next: string): unknown;
  /** See `kvMemory` of `memory.ts`; the parameters as JSON. */
  kvMemory(params: string): unknown;
  /** See `simulate` of `simulation.ts`; the parameters as JSON. */
  simulate(params: string): unknown;
}

let load: () => Promise<PureModule> = startModule;
let started: Promise<PureModule> | undefined;

async function startModule(): Promise<PureModule> {
  const module = await import('../wasm/pagewise.js');
  await module.default();
  return module as unknown as PureModule;
}

/**
 * Replaces how the module is started, for tests.
 *
 * @internal
 */
export function useModule(loader: () => Promise<PureModule>): void {
  load = loader;
  started = undefined;
}

/**
 * A value as JSON, as a request would carry it: fields that are undefined are left out, and halves of characters become
 * U+FFFD, as in UTF-8. `what` names it in the error.
 */
export function toJson(value: unknown, what: string): string {
  const wellFormed = (_: string, part: unknown): unknown =>
    typeof part === 'string' ? part.replace(/\p{Surrogate}/gu, '\ufffd') : part;
  let json: string | undefined;
  try {
    json = JSON.stringify(value, wellFormed);
  } catch (cause) {
    throw new PagewiseError('bad_request', `${what} cannot be written as JSON: ${cause}`, { cause });
  }
  if (json === undefined) throw new PagewiseError('bad_request', `${what} is missing`);
  return json;
}

/** Calls a function of the module, which is started if need be; a start that failed is tried again next time. */
export async function callModule<T>(call: (module: PureModule) => unknown): Promise<T> {
  started ??= load();
  let module: PureModule;
  try {
    module = await started;
  } catch (cause) {
    started = undefined;
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new PagewiseError('network', `the WebAssembly module could not be started: ${text}`, { cause });
  }
  try {
    return call(module) as T;
  } catch (error) {
    if (isErrorRecord(error)) throw PagewiseError.fromRecord(error);
    throw new PagewiseError('worker_crashed', String(error), { cause: error });
  }
}
