/**
 * Models in the browser's storage.
 */

import { bad, show } from './fields.js';
import type { DownloadOptions, StoredModel } from './model-types.js';
import { checkOptions, type OptionKinds } from './options.js';
import type { SourceSpec } from './protocol.js';
import type { ModelSource, SourceOptions } from './types.js';
import { askToPersist, inWorker, resolveForWorker, SOURCE_OPTIONS } from './with-worker.js';

const DOWNLOAD_OPTIONS: OptionKinds<DownloadOptions> = { ...SOURCE_OPTIONS, onProgress: 'function', sha256: 'any' };

/** Options of {@link Models.list}. */
export type ListOptions = Pick<SourceOptions, 'signal' | 'createWorker'>;

/**
 * Models that were downloaded to be kept: in the origin private file system, or in IndexedDB where there is none. Loading,
 * planning and inspecting read a stored model instead of its address; what a server has for an address in the meantime is not
 * asked, so delete it to have the new one. A registry whose SHA-256 is another one is believed.
 *
 * Every call rejects with a {@link PagewiseError}: `storage_full` where the browser has no room or allows no storage,
 * `cancelled`, `bad_request`, and `network` where an id has to be looked up in a registry.
 */
export class Models {
  /** Every model that there is something of. One of which the browser took a part is removed and not listed. */
  async list(options?: ListOptions): Promise<StoredModel[]> {
    const checked = checkOptions('list', options, { signal: 'signal', createWorker: 'function' });
    return inWorker(checked, (client) => client.call('modelsList', {}));
  }

  /** Whether all of a model is there and checked, so that it can be loaded without network. */
  async has(source: ModelSource, options?: SourceOptions): Promise<boolean> {
    const checked = checkOptions('has', options, SOURCE_OPTIONS);
    const spec = await resolveForWorker(source, checked);
    return inWorker(checked, async (client) => (await client.call('modelsFind', { source: spec })) !== null);
  }

  /**
   * Removes what there is of a model, unfinished downloads included; says whether there was anything. Rejects with
   * `bad_request` while it is being downloaded. An engine that has loaded it is not concerned.
   */
  async delete(source: ModelSource, options?: SourceOptions): Promise<boolean> {
    const checked = checkOptions('delete', options, SOURCE_OPTIONS);
    const spec = await resolveForWorker(source, checked);
    return inWorker(checked, (client) => client.call('modelsDelete', { source: spec }));
  }

  /**
   * Downloads a model and keeps it, unless it is there. The browser is asked to keep it when space gets short. What a download
   * that was aborted, or cut off by a reload or the network, has brought stays, and the next one goes on from it, if the
   * server still has the same file. While another tab downloads the same model, this waits for it.
   *
   * Rejects also with `network`, and with `corrupt_model` when it is not a GGUF file or not the one with this SHA-256: then
   * nothing is kept.
   */
  async download(source: ModelSource, options?: DownloadOptions): Promise<StoredModel> {
    const checked = checkOptions('download', options, DOWNLOAD_OPTIONS);
    const { onProgress } = checked;
    const hashes = checkHashes(checked.sha256);
    const spec = withHashes(await resolveForWorker(source, checked), hashes);
    askToPersist();
    return inWorker(checked, (client) => {
      client.onProgress = ({ loadedBytes, totalBytes }) => onProgress?.({ loadedBytes, totalBytes });
      return client.call('modelsDownload', { source: spec });
    });
  }
}

function checkHashes(given: unknown): string[] {
  if (given === undefined) return [];
  const hashes: unknown[] = Array.isArray(given) ? given : [given];
  return hashes.map((hash) => {
    if (typeof hash === 'string' && /^[0-9a-f]{64}$/i.test(hash)) return hash.toLowerCase();
    throw bad(`sha256: 64 hexadecimal digits are needed, ${show(hash)} given`);
  });
}

function withHashes(source: SourceSpec, hashes: readonly string[]): SourceSpec {
  if (hashes.length === 0 || source.failure !== undefined) return source;
  if (hashes.length !== source.parts.length) {
    throw bad(`sha256: one for each of ${source.parts.length} parts is needed, ${hashes.length} given`);
  }
  const parts = source.parts.map((part, index) => {
    return part.kind === 'url' ? { ...part, sha256: hashes[index] as string } : part;
  });
  return { ...source, parts };
}
