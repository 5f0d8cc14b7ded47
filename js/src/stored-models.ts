/**
 * Stored models as the worker sees them: found, listed, removed, downloaded. Each has a Web Lock, which whoever changes it holds.
 */

import { DOWNLOAD_SETTINGS, type DownloadSettings, download } from './download.js';
import { cancelledError, PagewiseError } from './errors.js';
import { addressesOf, type Journal, keyOf, parseJournal, storedBytes } from './journal.js';
import type { StoredModel } from './model-types.js';
import type { PartSpec, SourceSpec } from './protocol.js';
import { NETWORK, type NetworkEnvironment } from './retry.js';
import { type ModelStorage, type StorageEnvironment, storageError } from './storage.js';

/** A model that is there. */
export interface FoundModel {
  /** What it is. */
  model: StoredModel;
  /** Its bytes. */
  parts: PartSpec[];
}

/** What a download is told. */
export interface ModelDownloadOptions {
  /** Ends it. */
  signal?: AbortSignal;
  /** Called with bytes that are there and bytes in all. */
  onProgress?: (loadedBytes: number, totalBytes: number) => void;
}

/** See the file's comment. */
export class StoredModels {
  readonly #environment: StorageEnvironment;
  readonly #network: NetworkEnvironment;
  readonly #settings: DownloadSettings;
  #storage: Promise<ModelStorage> | undefined;

  /** Opens nothing yet. */
  constructor(environment: StorageEnvironment, network = NETWORK, settings = DOWNLOAD_SETTINGS) {
    this.#environment = environment;
    this.#network = network;
    this.#settings = settings;
  }

  /** Every model that there is something of. What the browser took parts of is removed. */
  async list(): Promise<StoredModel[]> {
    return this.#using(async (storage) => {
      const models: StoredModel[] = [];
      for (const key of await storage.keys()) {
        const journal = await this.#look(storage, key);
        if (journal !== undefined) models.push(describe(journal));
      }
      return models;
    });
  }

  /** A whole model, as the source has it; undefined when there is none. */
  async find(source: SourceSpec): Promise<FoundModel | undefined> {
    return this.#using(async (storage) => {
      const key = await this.#keyOf(storage, source);
      return key === undefined ? undefined : this.#find(storage, key, source);
    });
  }

  /** Removes what there is of a model; says whether there was anything. */
  async delete(source: SourceSpec): Promise<boolean> {
    return this.#using(async (storage) => {
      const key = await this.#keyOf(storage, source);
      if (key === undefined || !(await storage.keys()).includes(key)) return false;
      const isRemoved = await this.#ifUnlocked(key, () => storage.remove(key));
      if (!isRemoved) throw new PagewiseError('bad_request', `${source.id} is being downloaded; abort that first`);
      return true;
    });
  }

  /** Downloads a model, unless it is there. While somebody else downloads it, this waits. */
  async download(source: SourceSpec, options: ModelDownloadOptions = {}): Promise<FoundModel> {
    const { signal = new AbortController().signal, onProgress = () => undefined } = options;
    return this.#using(async (storage) => {
      const urls = addressesOf(source);
      const key = await this.#keyOf(storage, source);
      if (key === undefined) {
        if (source.failure !== undefined) throw PagewiseError.fromRecord(source.failure);
        throw new PagewiseError('bad_request', 'source: only what is at an http or https address can be downloaded');
      }
      return this.#locked(key, signal, async () => {
        const there = await this.#find(storage, key, source);
        if (there !== undefined) {
          onProgress(there.model.bytes, there.model.bytes);
          return there;
        }
        if (source.failure !== undefined) throw PagewiseError.fromRecord(source.failure);
        const { estimate } = this.#environment;
        const [network, settings] = [this.#network, this.#settings];
        await download({ key, source, urls, storage, estimate, network, settings, signal, onProgress });
        const found = await this.#find(storage, key, source);
        if (found === undefined) throw new PagewiseError('storage_full', `the browser did not keep ${source.id}`);
        return found;
      });
    });
  }

  async #using<T>(use: (storage: ModelStorage) => Promise<T>): Promise<T> {
    try {
      this.#storage ??= this.#environment.open();
      return await use(await this.#storage);
    } catch (error) {
      throw storageError(error);
    }
  }

  /** The folder of a source; of an id that could not be looked up, the one that was downloaded under it. */
  async #keyOf(storage: ModelStorage, source: SourceSpec): Promise<string | undefined> {
    const urls = addressesOf(source);
    if (urls.length > 0) return keyOf(urls);
    if (source.failure === undefined) return undefined;
    for (const key of await storage.keys()) {
      const journal = parseJournal(await storage.readJournal(key));
      if (journal?.id === source.id && journal.registry === source.registry) return key;
    }
    return undefined;
  }

  async #find(storage: ModelStorage, key: string, source: SourceSpec): Promise<FoundModel | undefined> {
    const journal = await this.#look(storage, key);
    if (journal?.completedMs === undefined) return undefined;
    const parts: PartSpec[] = [];
    for (const [index, part] of journal.parts.entries()) {
      const wanted = source.parts[index];
      const isOther = wanted?.kind === 'url' && wanted.sha256 !== undefined && wanted.sha256 !== part?.sha256;
      const blob = await storage.partBlob(key, index);
      if (isOther || blob === undefined) return undefined;
      parts.push({ kind: 'blob', blob, name: `the stored ${journal.urls[index]}` });
    }
    return { model: describe(journal), parts };
  }

  /** A folder's journal, after the folder was removed if the browser has taken a part of it. */
  async #look(storage: ModelStorage, key: string): Promise<Journal | undefined> {
    const journal = parseJournal(await storage.readJournal(key));
    if (journal !== undefined && (journal.completedMs === undefined || (await isWhole(storage, key, journal)))) {
      return journal;
    }
    // One that is being written is none of ours.
    await this.#ifUnlocked(key, async () => {
      const again = parseJournal(await storage.readJournal(key));
      if (again?.completedMs === journal?.completedMs) await storage.remove(key);
    });
    return undefined;
  }

  async #locked<T>(key: string, signal: AbortSignal, use: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw cancelledError(signal);
    const { locks } = this.#environment;
    if (locks === undefined) return use();
    try {
      return (await locks.request(lockName(key), { signal }, use)) as T;
    } catch (error) {
      if (signal.aborted) throw cancelledError(signal);
      throw error;
    }
  }

  /** Says whether nobody had the lock. */
  async #ifUnlocked(key: string, use: () => Promise<void>): Promise<boolean> {
    const { locks } = this.#environment;
    const guarded = async (lock: unknown): Promise<boolean> => {
      if (lock === null) return false;
      await use();
      return true;
    };
    return locks === undefined ? guarded(true) : locks.request(lockName(key), { ifAvailable: true }, guarded);
  }
}

function lockName(key: string): string {
  return `pagewise-model-${key}`;
}

/** Whether all bytes are there that the journal says. */
async function isWhole(storage: ModelStorage, key: string, journal: Journal): Promise<boolean> {
  for (const [index, part] of journal.parts.entries()) {
    if (part?.sha256 === undefined || (await storage.partBlob(key, index))?.size !== part.size) return false;
  }
  return true;
}

function describe(journal: Journal): StoredModel {
  const { id, name = id, urls, parts, chunkBytes, completedMs } = journal;
  const sum = (of: (part: NonNullable<(typeof parts)[number]>) => number): number =>
    parts.reduce((all, part) => all + (part === undefined ? 0 : of(part)), 0);
  const isComplete = completedMs !== undefined;
  return {
    id,
    name,
    urls,
    bytes: parts.some((part) => part === undefined) ? 0 : sum((part) => part.size),
    storedBytes: sum((part) => storedBytes(part, chunkBytes)),
    isComplete,
    sha256: isComplete ? parts.map((part) => part?.sha256 ?? '') : [],
  };
}
