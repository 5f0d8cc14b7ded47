/**
 * Stored models in IndexedDB, for browsers without a file system: each chunk is a blob.
 */

import type { ModelStorage, StoredPart } from './storage.js';

const DATABASE = 'pagewise-models';
/** Journals, by model. */
const JOURNALS = 'journals';
/** Chunks, by model, part and offset. */
const CHUNKS = 'chunks';

/** See {@link ModelStorage}. */
export class IdbStorage implements ModelStorage {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
  }

  /** Opens the database; makes it where it is not there. */
  static async open(factory: IDBFactory): Promise<IdbStorage> {
    const opening = factory.open(DATABASE, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore(JOURNALS);
      opening.result.createObjectStore(CHUNKS);
    };
    return new IdbStorage(await settled(opening));
  }

  async keys(): Promise<string[]> {
    return (await settled(this.#database.transaction(JOURNALS).objectStore(JOURNALS).getAllKeys())) as string[];
  }

  async readJournal(key: string): Promise<string> {
    const text: unknown = await settled(this.#database.transaction(JOURNALS).objectStore(JOURNALS).get(key));
    return typeof text === 'string' ? text : '';
  }

  appendJournal(key: string, text: string): Promise<void> {
    return this.#change([JOURNALS], (transaction) => {
      const store = transaction.objectStore(JOURNALS);
      const before = store.get(key);
      before.onsuccess = () => store.put(`${typeof before.result === 'string' ? before.result : ''}${text}`, key);
    });
  }

  async openPart(key: string, part: number): Promise<StoredPart> {
    return {
      write: (offset, bytes) =>
        this.#change([CHUNKS], (transaction) => {
          transaction.objectStore(CHUNKS).put(new Blob([bytes]), [key, part, offset]);
        }),
      read: async (offset, length) => {
        const request = this.#database.transaction(CHUNKS).objectStore(CHUNKS).get([key, part, offset]);
        const blob: unknown = await settled(request);
        return blob instanceof Blob ? new Uint8Array(await blob.slice(0, length).arrayBuffer()) : new Uint8Array(0);
      },
      clear: () => this.#change([CHUNKS], (transaction) => transaction.objectStore(CHUNKS).delete(chunksOf(key, part))),
      close: () => undefined,
    };
  }

  async partBlob(key: string, part: number): Promise<Blob | undefined> {
    const store = this.#database.transaction(CHUNKS).objectStore(CHUNKS);
    const blobs = (await settled(store.getAll(chunksOf(key, part)))) as Blob[];
    return blobs.length === 0 ? undefined : new Blob(blobs);
  }

  remove(key: string): Promise<void> {
    return this.#change([JOURNALS, CHUNKS], (transaction) => {
      transaction.objectStore(JOURNALS).delete(key);
      transaction.objectStore(CHUNKS).delete(IDBKeyRange.bound([key], [key, []]));
    });
  }

  /** Resolves when the change has been written, not only made. */
  #change(stores: string[], change: (transaction: IDBTransaction) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const transaction = this.#database.transaction(stores, 'readwrite', { durability: 'strict' });
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      change(transaction);
    });
  }
}

/** Every chunk of a part, in order. */
function chunksOf(key: string, part: number): IDBKeyRange {
  return IDBKeyRange.bound([key, part], [key, part, []]);
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
