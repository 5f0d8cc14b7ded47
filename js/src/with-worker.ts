/**
 * A worker for one call, or for as long as an engine lives.
 */

import { workerChannel } from './channel.js';
import { WorkerClient } from './client.js';
import { cancelledError, PagewiseError } from './errors.js';
import type { OptionKinds } from './options.js';
import type { SourceSpec } from './protocol.js';
import { isRegistryId, resolveSource } from './source.js';
import type { ModelSource, SourceOptions } from './types.js';

/** What each call that takes a source takes beside it. */
export const SOURCE_OPTIONS: OptionKinds<SourceOptions> = {
  signal: 'signal',
  registry: 'any',
  headers: 'any',
  createWorker: 'function',
};

/** The package's own worker; the expression is the one that bundlers understand. */
export function defaultWorker(): Worker {
  return new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'pagewise' });
}

/** Servers that render pages import this package too. That is fine; what needs a browser says so, before anything else. */
export function needBrowser({ createWorker }: Pick<SourceOptions, 'createWorker'>): void {
  if (createWorker !== undefined || typeof Worker !== 'undefined') return;
  throw new PagewiseError('no_webgpu', 'models run in a browser: there are no web workers here, so no WebGPU either');
}

/** Starts a worker for `use`; when that fails or the signal aborts, the worker is ended. */
export async function withWorker<T>(
  options: Pick<SourceOptions, 'signal' | 'createWorker'>,
  use: (client: WorkerClient) => Promise<T>,
): Promise<T> {
  needBrowser(options);
  const { signal } = options;
  if (signal?.aborted) throw cancelledError(signal);
  const client = new WorkerClient(workerChannel(options.createWorker ?? defaultWorker));
  const onAbort = (): void => client.close(cancelledError(signal));
  signal?.addEventListener('abort', onAbort);
  try {
    return await use(client);
  } catch (error) {
    client.close(error as PagewiseError);
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** As {@link withWorker}, for one call: the worker is ended in any case. */
export function inWorker<T>(
  options: Pick<SourceOptions, 'signal' | 'createWorker'>,
  use: (client: WorkerClient) => Promise<T>,
): Promise<T> {
  return withWorker(options, async (client) => {
    const result = await use(client);
    client.close(cancelledError());
    return result;
  });
}

/** Resolves a source. An id whose registry cannot be reached stands for the model that was stored under it, if one was. */
export async function resolveForWorker(source: ModelSource, options: SourceOptions): Promise<SourceSpec> {
  needBrowser(options);
  if (options.signal?.aborted) throw cancelledError(options.signal);
  try {
    return await resolveSource(source, options);
  } catch (error) {
    const isUnreachable = error instanceof PagewiseError && error.code === 'network' && error.url !== undefined;
    if (!isUnreachable || typeof source !== 'string' || !isRegistryId(source)) throw error;
    return { id: source, registry: error.url as string, parts: [], headers: {}, failure: error.toRecord() };
  }
}

/** Asks the browser to keep what is stored. It may ask the visitor, who may never answer: nobody waits for it. */
export function askToPersist(): void {
  try {
    void navigator.storage.persist().catch(() => undefined);
  } catch {
    // There is no such thing outside of pages with a secure context.
  }
}
