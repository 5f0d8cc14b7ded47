/**
 * The browser's file system and locks in memory, as far as stored models use them.
 */

import { OpfsStorage } from '../src/opfs-storage.js';
import type { StorageEnvironment } from '../src/storage.js';

const error = (name: string): DOMException => new DOMException(name, name);

class FakeFile {
  bytes = new Uint8Array(0);
  isLocked = false;
  readonly #disk: FakeDisk;

  constructor(disk: FakeDisk) {
    this.#disk = disk;
  }

  async getFile(): Promise<Blob> {
    return new Blob([this.bytes]);
  }

  async createSyncAccessHandle(): Promise<object> {
    if (this.isLocked) {
      this.#disk.numConflicts += 1;
      throw error('NoModificationAllowedError');
    }
    this.isLocked = true;
    return {
      getSize: () => this.bytes.length,
      read: (to: Uint8Array, { at }: { at: number }) => {
        const piece = this.bytes.subarray(at, at + to.length);
        to.set(piece);
        return piece.length;
      },
      write: (bytes: Uint8Array, { at }: { at: number }) => this.#write(bytes, at),
      truncate: (size: number) => {
        this.bytes = this.bytes.slice(0, size);
      },
      flush: () => undefined,
      close: () => {
        this.isLocked = false;
      },
    };
  }

  #write(bytes: Uint8Array, at: number): number {
    this.#disk.onWrite();
    const end = Math.max(this.bytes.length, at + bytes.length);
    if (this.#disk.usage() + end - this.bytes.length > this.#disk.quota) throw error('QuotaExceededError');
    const grown = new Uint8Array(end);
    grown.set(this.bytes);
    grown.set(bytes, at);
    this.bytes = grown;
    return bytes.length;
  }
}

type Entry = FakeFile | FakeDirectory;

class FakeDirectory {
  readonly entries = new Map<string, Entry>();
  readonly #disk: FakeDisk;

  constructor(disk: FakeDisk) {
    this.#disk = disk;
  }

  async getDirectoryHandle(name: string, options?: { create: boolean }): Promise<Entry> {
    return this.#get(name, options?.create, () => new FakeDirectory(this.#disk));
  }

  async getFileHandle(name: string, options?: { create: boolean }): Promise<Entry> {
    return this.#get(name, options?.create, () => new FakeFile(this.#disk));
  }

  async removeEntry(name: string): Promise<void> {
    if (!this.entries.delete(name)) throw error('NotFoundError');
  }

  async *keys(): AsyncIterableIterator<string> {
    yield* this.entries.keys();
  }

  #get(name: string, create: boolean | undefined, make: () => Entry): Entry {
    const entry = this.entries.get(name) ?? (create ? make() : undefined);
    if (entry === undefined) throw error('NotFoundError');
    this.entries.set(name, entry);
    return entry;
  }

  size(): number {
    const sizes = [...this.entries.values()].map((entry) =>
      entry instanceof FakeFile ? entry.bytes.length : entry.size(),
    );
    return sizes.reduce((a, b) => a + b, 0);
  }
}

/** What outlives a page. */
export class FakeDisk {
  readonly root = new FakeDirectory(this);
  readonly locks = new FakeLocks();
  /** What writes can take. */
  quota = Number.POSITIVE_INFINITY;
  /** What the browser tells of it. */
  told: { usage?: number; quota?: number } = {};
  /** Files that were opened while they were open. */
  numConflicts = 0;
  onWrite: () => void = () => undefined;

  usage(): number {
    return this.root.size();
  }

  get environment(): StorageEnvironment {
    return {
      open: async () => new OpfsStorage(this.root as unknown as FileSystemDirectoryHandle),
      estimate: async () => this.told,
      locks: this.locks as unknown as LockManager,
    };
  }

  /** Folders of models. */
  get folders(): FakeDirectory[] {
    return [...((this.root.entries.get('pagewise-models') as FakeDirectory | undefined)?.entries.values() ?? [])].map(
      (entry) => entry as FakeDirectory,
    );
  }

  /** A file of the only model. */
  file(name: string): FakeFile {
    return this.folders[0]?.entries.get(name) as FakeFile;
  }

  get journal(): string {
    return new TextDecoder().decode(this.file('journal').bytes);
  }
}

type LockOptions = { signal?: AbortSignal; ifAvailable?: boolean };

/** Exclusive locks. */
class FakeLocks {
  readonly #held = new Map<string, Promise<void>>();

  async request(name: string, options: LockOptions, use: (lock: object | null) => unknown): Promise<unknown> {
    if (this.#held.has(name) && options.ifAvailable) return use(null);
    const aborted = new Promise<never>((_, reject) => {
      options.signal?.addEventListener('abort', () => reject(error('AbortError')));
    });
    aborted.catch(() => undefined);
    for (let held = this.#held.get(name); held !== undefined; held = this.#held.get(name)) {
      await Promise.race([held, aborted]);
    }
    let release = (): void => undefined;
    const holding = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held.set(name, holding);
    try {
      return await use({ name });
    } finally {
      this.#held.delete(name);
      release();
    }
  }
}
