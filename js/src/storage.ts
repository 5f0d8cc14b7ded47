/**
 * Where models are stored: folders of parts with a journal each, in whatever storage the browser has.
 */

import { PagewiseError } from './errors.js';
import { IdbStorage } from './idb-storage.js';
import { OpfsStorage } from './opfs-storage.js';

/** One part of a model that is being written. */
export interface StoredPart {
  /** Writes a chunk; it is there even after a crash once the promise has resolved. */
  write(offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Up to `length` bytes of a chunk that was written at `offset`; fewer when they are gone. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Takes everything out. */
  clear(): Promise<void>;
  /** Lets others open it. */
  close(): void;
}

/** Folders by key. Whatever fails is told with what the browser threw; see {@link storageError}. */
export interface ModelStorage {
  /** Every folder. */
  keys(): Promise<string[]>;
  /** All lines of a folder's journal; empty when there is none. */
  readJournal(key: string): Promise<string>;
  /** Adds to a folder's journal; makes both where they are not there. */
  appendJournal(key: string, text: string): Promise<void>;
  /** Opens a part for writing; makes it where it is not there. */
  openPart(key: string, part: number): Promise<StoredPart>;
  /** A part as it is, left where it is; undefined when it is not there. */
  partBlob(key: string, part: number): Promise<Blob | undefined>;
  /** Removes a folder, if it is there. */
  remove(key: string): Promise<void>;
}

/** What storing needs from the browser. */
export interface StorageEnvironment {
  /** Opens the storage. */
  open(): Promise<ModelStorage>;
  /** How much there is room for, where the browser tells. */
  estimate(): Promise<{ usage?: number; quota?: number }>;
  /** Web Locks; without them nothing keeps two tabs apart. */
  locks: Pick<LockManager, 'request'> | undefined;
}

/**
 * The browser's own: its file system where it has one for workers, else IndexedDB. A shared worker only reads: it is taken to
 * have what a worker of a page has, except that it cannot write files.
 */
export function browserStorage(
  navigator: Navigator,
  indexedDb: IDBFactory | undefined,
  onlyReads = 'onconnect' in globalThis,
): StorageEnvironment {
  // Typed as always there; pages without a secure context have none.
  const storage = navigator.storage as Partial<StorageManager> | undefined;
  return {
    open: async () => {
      const isThere =
        typeof FileSystemFileHandle === 'function' &&
        (onlyReads || 'createSyncAccessHandle' in FileSystemFileHandle.prototype);
      // Private windows of some browsers have it and refuse it.
      const root = isThere ? await storage?.getDirectory?.().catch(() => undefined) : undefined;
      if (root !== undefined) return new OpfsStorage(root);
      if (indexedDb !== undefined) return IdbStorage.open(indexedDb);
      throw new PagewiseError('storage_full', 'this browser has no storage for models: nothing can be stored');
    },
    estimate: async () => (await storage?.estimate?.()) ?? {},
    locks: navigator.locks as LockManager | undefined,
  };
}

/** What the browser threw as an error of ours. */
export function storageError(error: unknown): PagewiseError {
  if (error instanceof PagewiseError) return error;
  const { name, message } = (error ?? {}) as Partial<Error>;
  const text = `the browser's storage failed (${name ?? 'Error'}: ${message ?? String(error)})`;
  return new PagewiseError('storage_full', text, { cause: error });
}

/** The error of a model that there is no room for. */
export function fullError(asked: number, free: number | undefined, cause?: unknown): PagewiseError {
  const numbers = `${asked} bytes asked, ${free ?? 'fewer'} free`;
  return new PagewiseError('storage_full', `no room for the model in the browser's storage: ${numbers}`, { cause });
}
