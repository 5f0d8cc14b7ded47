/**
 * Documents and their passages in IndexedDB, in a database of their own. A document comes and goes whole, in one transaction:
 * where there is no room for all of it, nothing of it is there.
 */
import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import { DocumentError, type DocumentRecord, type PassageRecord } from './records';

export const DOCUMENTS_DATABASE = 'pagewise.documents';

interface Schema extends DBSchema {
  documents: { key: string; value: DocumentRecord; indexes: { hash: string } };
  passages: { key: string; value: PassageRecord; indexes: { document: string; hash: string } };
}

/** A document with its passages. */
export interface WholeDocument {
  readonly document: DocumentRecord;
  readonly passages: readonly PassageRecord[];
}

export class DocumentStore {
  private constructor(private readonly db: IDBPDatabase<Schema>) {}

  /** Opens the database; rejects where the browser allows none. `onClosed` is told when it is erased. */
  static async open(onClosed: () => void = () => undefined): Promise<DocumentStore> {
    const db = await openDB<Schema>(DOCUMENTS_DATABASE, 1, {
      upgrade(database) {
        database.createObjectStore('documents', { keyPath: 'id' }).createIndex('hash', 'hash');
        const passages = database.createObjectStore('passages', { keyPath: 'id' });
        passages.createIndex('document', 'document');
        passages.createIndex('hash', 'hash');
      },
      blocking(_current, _blocked, event) {
        (event.target as IDBDatabase).close();
        onClosed();
      },
      terminated: onClosed,
    });
    return new DocumentStore(db);
  }

  /** All documents, the newest first. */
  async list(): Promise<DocumentRecord[]> {
    return (await this.db.getAll('documents')).sort((a, b) => b.added - a.added);
  }

  /** The document with this hash. */
  async find(hash: string): Promise<DocumentRecord | null> {
    return (await this.db.getFromIndex('documents', 'hash', hash)) ?? null;
  }

  /** Adds a document; rejects with `storage_full` where there is no room, and then has nothing of it. */
  async add({ document, passages }: WholeDocument): Promise<void> {
    const tx = this.db.transaction(['documents', 'passages'], 'readwrite');
    // A transaction that fails says why itself; what its parts say is the same, or that it is over.
    const ended = tx.done.then(
      () => null,
      (error: unknown) => error ?? new Error('aborted'),
    );
    const put = (part: () => Promise<unknown>): void => void part().catch(() => undefined);
    try {
      put(() => tx.objectStore('documents').put(document));
      for (const passage of passages) put(() => tx.objectStore('passages').put(passage));
    } catch {
      // It ended in the middle.
    }
    const error = await ended;
    if (error === null) return;
    const isFull = error instanceof DOMException && error.name === 'QuotaExceededError';
    throw new DocumentError(isFull ? 'storage_full' : 'not_stored', String(error));
  }

  /** Removes a document and answers with all of it, so that it can be put back. */
  async delete(id: string): Promise<WholeDocument | null> {
    const tx = this.db.transaction(['documents', 'passages'], 'readwrite');
    const document = await tx.objectStore('documents').get(id);
    const passages = await tx.objectStore('passages').index('document').getAll(id);
    void tx.objectStore('documents').delete(id);
    for (const passage of passages) void tx.objectStore('passages').delete(passage.id);
    await tx.done;
    return document ? { document, passages } : null;
  }

  async passagesOf(document: string): Promise<PassageRecord[]> {
    const passages = await this.db.getAllFromIndex('passages', 'document', document);
    return passages.sort((a, b) => a.index - b.index);
  }

  /** These passages, in this order, without those that are gone. */
  async passages(ids: readonly string[]): Promise<PassageRecord[]> {
    const tx = this.db.transaction('passages');
    const found = await Promise.all(ids.map((id) => tx.store.get(id)));
    return found.filter((passage) => passage !== undefined);
  }

  /** How many of these texts some document has already. */
  async countKnown(hashes: readonly string[]): Promise<number> {
    const index = this.db.transaction('passages').store.index('hash');
    const counts = await Promise.all(hashes.map((hash) => index.count(hash)));
    return counts.filter((count) => count > 0).length;
  }

  close(): void {
    this.db.close();
  }
}
