/**
 * Stored models in the origin private file system. Access handles, which lock a file, exist in workers only.
 */

import type { ModelStorage, StoredPart } from './storage.js';

/** What is used of an access handle; the DOM's types know only the page's. */
interface SyncHandle {
  getSize(): number;
  read(to: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

interface FileHandle extends FileSystemFileHandle {
  createSyncAccessHandle(): Promise<SyncHandle>;
}

interface DirectoryHandle extends FileSystemDirectoryHandle {
  keys(): AsyncIterableIterator<string>;
}

const FOLDER = 'pagewise-models';
const JOURNAL = 'journal';
/** A worker that was ended a moment ago may still hold a file. */
const LOCK_WAITS_MS = [50, 100, 200, 400, 800];

/** See {@link ModelStorage}. */
export class OpfsStorage implements ModelStorage {
  readonly #root: FileSystemDirectoryHandle;

  /** `root` is the origin's directory. */
  constructor(root: FileSystemDirectoryHandle) {
    this.#root = root;
  }

  async keys(): Promise<string[]> {
    const folder = (await orUndefined(this.#root.getDirectoryHandle(FOLDER))) as DirectoryHandle | undefined;
    const keys: string[] = [];
    if (folder !== undefined) for await (const key of folder.keys()) keys.push(key);
    return keys;
  }

  async readJournal(key: string): Promise<string> {
    return (await (await this.#file(key, JOURNAL))?.text()) ?? '';
  }

  async appendJournal(key: string, text: string): Promise<void> {
    const handle = await this.#handle(key, JOURNAL);
    try {
      writeAll(handle, handle.getSize(), new TextEncoder().encode(text));
      handle.flush();
    } finally {
      handle.close();
    }
  }

  async openPart(key: string, part: number): Promise<StoredPart> {
    const handle = await this.#handle(key, `part-${part}`);
    return {
      write: async (offset, bytes) => {
        writeAll(handle, offset, bytes);
        handle.flush();
      },
      read: async (offset, length) => {
        const out = new Uint8Array(length);
        return out.subarray(0, handle.read(out, { at: offset }));
      },
      clear: async () => handle.truncate(0),
      close: () => handle.close(),
    };
  }

  async partBlob(key: string, part: number): Promise<Blob | undefined> {
    return this.#file(key, `part-${part}`);
  }

  async remove(key: string): Promise<void> {
    const folder = await orUndefined(this.#root.getDirectoryHandle(FOLDER));
    if (folder !== undefined) await orUndefined(whenFree(() => folder.removeEntry(key, { recursive: true })));
  }

  async #file(key: string, name: string): Promise<File | undefined> {
    const folder = await orUndefined(this.#root.getDirectoryHandle(FOLDER));
    const model = folder && (await orUndefined(folder.getDirectoryHandle(key)));
    const file = model && (await orUndefined(model.getFileHandle(name)));
    return file && orUndefined(file.getFile());
  }

  async #handle(key: string, name: string): Promise<SyncHandle> {
    const folder = await this.#root.getDirectoryHandle(FOLDER, { create: true });
    const model = await folder.getDirectoryHandle(key, { create: true });
    const file = (await model.getFileHandle(name, { create: true })) as FileHandle;
    return whenFree(() => file.createSyncAccessHandle());
  }
}

/** Nothing where there is no such entry. */
async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if ((error as Partial<Error>).name === 'NotFoundError') return undefined;
    throw error;
  }
}

async function whenFree<T>(use: () => Promise<T>): Promise<T> {
  for (const ms of LOCK_WAITS_MS) {
    try {
      return await use();
    } catch (error) {
      if ((error as Partial<Error>).name !== 'NoModificationAllowedError') throw error;
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
  }
  return use();
}

/** Some browsers write what there is room for instead of throwing. */
function writeAll(handle: SyncHandle, offset: number, bytes: Uint8Array): void {
  const written = handle.write(bytes, { at: offset });
  if (written < bytes.length) throw new DOMException(`${written} of ${bytes.length} bytes`, 'QuotaExceededError');
}
