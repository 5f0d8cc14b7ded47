/**
 * One download of a model into storage: ranges of all parts at once, each chunk noted in the journal once it is written, the
 * whole read back and hashed meanwhile. What is there already is not fetched again.
 */

import { cancelledError, PagewiseError } from './errors.js';
import {
  chunkLength,
  headerLine,
  type Journal,
  type JournalPart,
  journalLine,
  parseJournal,
  storedBytes,
} from './journal.js';
import type { SourceSpec } from './protocol.js';
import {
  type Connection,
  isContinuable,
  openRange,
  probe,
  type RemoteFile,
  StaleError,
  tooFew,
} from './remote-file.js';
import { MAX_DOWNLOAD_RETRIES, type NetworkEnvironment, withRetries } from './retry.js';
import { Sha256 } from './sha256.js';
import { fullError, type ModelStorage, type StorageEnvironment, type StoredPart, storageError } from './storage.js';

/** How a download is cut. */
export interface DownloadSettings {
  /** What is written, and noted, at a time; memory holds one for each lane. */
  chunkBytes: number;
  /** What one request asks for, at most. */
  chunksPerRequest: number;
  /** Requests at a time. */
  numLanes: number;
}

/** What downloads use. Browsers open six connections to a host. */
export const DOWNLOAD_SETTINGS: DownloadSettings = { chunkBytes: 4 * 1024 ** 2, chunksPerRequest: 8, numLanes: 4 };

/** What a download needs. */
export interface DownloadTask {
  /** The folder. */
  key: string;
  /** The model; the first address of each part is in `urls`. */
  source: SourceSpec;
  /** See {@link addressesOf}. */
  urls: string[];
  /** Where it is kept. */
  storage: ModelStorage;
  /** How much room there is. */
  estimate: StorageEnvironment['estimate'];
  /** Where it comes from. */
  network: NetworkEnvironment;
  /** How it is cut. */
  settings: DownloadSettings;
  /** Ends it. */
  signal: AbortSignal;
  /** Called with bytes that are there and bytes in all. */
  onProgress(loadedBytes: number, totalBytes: number): void;
}

/** One part in progress. */
interface Work {
  index: number;
  file: RemoteFile;
  journal: JournalPart;
  stored: StoredPart;
}

/** Consecutive chunks that are missing. */
interface Run {
  work: Work;
  from: number;
  end: number;
}

/** Progress is told in steps of this. */
const PROGRESS_BYTES = 256 * 1024;

/** Downloads a model. What is there when it fails stays, and the next download goes on from it, unless the bytes are wrong. */
export async function download(task: DownloadTask): Promise<void> {
  let stale: StaleError | undefined;
  for (let numTries = 0; numTries < 2; numTries++) {
    try {
      return await new Download(task).run(stale !== undefined);
    } catch (error) {
      if (task.signal.aborted) throw cancelledError(task.signal);
      if (error instanceof WrongBytesError) await task.storage.remove(task.key);
      if (!(error instanceof StaleError)) throw error instanceof PagewiseError ? error : storageError(error);
      stale = error;
    }
  }
  throw new PagewiseError('network', `${stale?.message}, twice`, { cause: stale });
}

class Download {
  readonly #task: DownloadTask;
  readonly #abort = new AbortController();
  readonly #connection: Connection;
  #totalBytes = 0;
  #loadedBytes = 0;
  #toldBytes = -PROGRESS_BYTES;
  #turn: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;

  constructor(task: DownloadTask) {
    this.#task = task;
    const { signal } = this.#abort;
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const sleep = (ms: number): Promise<void> => Promise.race([task.network.sleep(ms), aborted]);
    this.#connection = { environment: { ...task.network, sleep }, headers: task.source.headers, signal };
  }

  /** With `isAnew`, nothing that is there is trusted. */
  async run(isAnew: boolean): Promise<void> {
    const onAbort = (): void => this.#stop();
    this.#task.signal.addEventListener('abort', onAbort);
    if (this.#task.signal.aborted) onAbort();
    const works: Work[] = [];
    try {
      const journal = await this.#openJournal();
      const files = await this.#probeAll();
      for (const [index, file] of files.entries()) works.push(await this.#openPart(journal, index, file, isAnew));
      await this.#checkRoom();
      this.#tell();
      await this.#fetchAll(works);
    } finally {
      this.#task.signal.removeEventListener('abort', onAbort);
      for (const { stored } of works) stored.close();
    }
    await this.#task.storage.appendJournal(this.#task.key, journalLine({ completedMs: Date.now() }));
  }

  #stop(): void {
    this.#abort.abort();
    this.#wake();
  }

  async #openJournal(): Promise<Journal> {
    const { key, source, urls, storage, settings } = this.#task;
    const { chunkBytes } = settings;
    const known = parseJournal(await storage.readJournal(key));
    if (known?.chunkBytes === chunkBytes && known.completedMs === undefined) return known;
    await storage.remove(key);
    const { id, name, registry } = source;
    const more = { ...(name === undefined ? {} : { name }), ...(registry === undefined ? {} : { registry }) };
    const header = { id, ...more, urls, chunkBytes };
    await storage.appendJournal(key, headerLine(header));
    return { ...header, parts: [] };
  }

  async #probeAll(): Promise<RemoteFile[]> {
    const { source } = this.#task;
    const files: RemoteFile[] = [];
    for (const part of source.parts) {
      if (part.kind === 'url') files.push(await probe(this.#connection, part.urls));
    }
    const size = files.reduce((sum, file) => sum + file.size, 0);
    if (source.bytes !== undefined && source.bytes !== size) {
      throw new PagewiseError('corrupt_model', `${source.id} has ${size} bytes, the registry says ${source.bytes}`);
    }
    this.#totalBytes = size;
    return files;
  }

  async #openPart(journal: Journal, index: number, file: RemoteFile, isAnew: boolean): Promise<Work> {
    const { key, source, storage, settings } = this.#task;
    const part = source.parts[index];
    const expected = (part?.kind === 'url' ? part.sha256 : undefined) ?? null;
    const before = journal.parts[index];
    const stored = await storage.openPart(key, index);
    try {
      // Whether its bytes are still there shows when they are read back.
      if (!isAnew && before !== undefined && isContinuable(before, file, expected)) {
        this.#loadedBytes += storedBytes(before, settings.chunkBytes);
        return { index, file, journal: { ...before, expected }, stored };
      }
      const { hasRanges: _, ...version } = file;
      // In this order: no chunk is ever noted that is not there.
      await storage.appendJournal(key, journalLine({ part: index, ...version, expected }));
      await stored.clear();
      return { index, file, journal: { ...version, expected, chunks: new Set() }, stored };
    } catch (error) {
      stored.close();
      throw error;
    }
  }

  async #checkRoom(): Promise<void> {
    const missing = this.#totalBytes - this.#loadedBytes;
    const free = await this.#free();
    if (free !== undefined && missing > free) throw fullError(missing, free);
  }

  /** Bytes that there is room for, where the browser tells. */
  async #free(): Promise<number | undefined> {
    const { usage, quota } = await this.#task.estimate();
    return usage === undefined || quota === undefined ? undefined : Math.max(0, quota - usage);
  }

  /** Fetches what is missing, in lanes, and checks what is there; the first failure ends all of it. */
  async #fetchAll(works: readonly Work[]): Promise<void> {
    const runs = works.flatMap((work) => this.#runsOf(work));
    const failures: unknown[] = [];
    const guarded = (job: Promise<void>): Promise<void> =>
      job.catch((error: unknown) => {
        failures.push(error);
        this.#stop();
      });
    const lane = async (): Promise<void> => {
      for (let run = runs.shift(); run !== undefined && failures.length === 0; run = runs.shift())
        await this.#fetch(run);
    };
    const jobs = Array.from({ length: this.#task.settings.numLanes }, lane);
    // All of them have to have ended before the files are closed.
    await Promise.all([...jobs, this.#verifyAll(works)].map(guarded));
    if (failures.length > 0) throw failures[0];
  }

  #runsOf(work: Work): Run[] {
    const { chunkBytes, chunksPerRequest } = this.#task.settings;
    const { size } = work.file;
    const numChunks = Math.ceil(size / chunkBytes);
    const runs: Run[] = [];
    const isMissing = (chunk: number): boolean => chunk < numChunks && !work.journal.chunks.has(chunk);
    for (let chunk = 0; chunk < numChunks; chunk++) {
      if (!isMissing(chunk)) continue;
      const first = chunk;
      // Without ranges there is one answer for all of it.
      const most = work.file.hasRanges ? chunksPerRequest : numChunks;
      while (isMissing(chunk + 1) && chunk + 1 - first < most) chunk += 1;
      runs.push({ work, from: first * chunkBytes, end: Math.min((chunk + 1) * chunkBytes, size) });
    }
    return runs;
  }

  async #fetch({ work, from, end }: Run): Promise<void> {
    const { chunkBytes } = this.#task.settings;
    const buffer = new Uint8Array(Math.min(chunkBytes, end - from));
    let at = from;
    let filled = 0;
    const drain = async (): Promise<void> => {
      if (at === end) return;
      const stream = await openRange(this.#connection, work.file, at, end);
      try {
        while (at < end) {
          const chunk = Math.floor(at / chunkBytes);
          const length = chunkLength(work.file.size, chunkBytes, chunk);
          const piece = await stream.pull(length - filled);
          if (piece === undefined) throw tooFew(work.file.url, at);
          buffer.set(piece, filled);
          filled += piece.length;
          at += piece.length;
          this.#loadedBytes += piece.length;
          if (filled === length) {
            await this.#store(work, chunk, buffer.subarray(0, length));
            filled = 0;
          }
          this.#tell();
        }
      } finally {
        stream.close();
      }
    };
    await withRetries(this.#connection.environment, () => at, drain, MAX_DOWNLOAD_RETRIES);
  }

  async #store(work: Work, chunk: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const { settings } = this.#task;
    this.#checkAborted();
    try {
      await work.stored.write(chunk * settings.chunkBytes, bytes);
      await this.#note(journalLine({ part: work.index, chunk }));
    } catch (error) {
      const isFull = (error as Partial<Error>).name === 'QuotaExceededError';
      throw isFull ? fullError(this.#totalBytes, await this.#free(), error) : error;
    }
    work.journal.chunks.add(chunk);
    this.#wake();
  }

  /** Lanes take turns: the journal is locked while it is written. */
  #note(line: string): Promise<void> {
    const { key, storage } = this.#task;
    const noted = this.#turn.then(() => storage.appendJournal(key, line));
    this.#turn = noted.catch(() => undefined);
    return noted;
  }

  /** Reads back what was written, in order and as soon as it is there. */
  async #verifyAll(works: readonly Work[]): Promise<void> {
    const { chunkBytes } = this.#task.settings;
    for (const { index, file, journal, stored } of works) {
      const hash = new Sha256();
      for (let chunk = 0; chunk * chunkBytes < file.size; chunk++) {
        while (!journal.chunks.has(chunk)) {
          this.#checkAborted();
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        this.#checkAborted();
        const length = chunkLength(file.size, chunkBytes, chunk);
        const bytes = await stored.read(chunk * chunkBytes, length);
        if (bytes.length < length) throw new StaleError(`what was stored of ${file.url} is gone`);
        hash.update(bytes);
      }
      const sha256 = hash.hex();
      if (journal.expected !== null && journal.expected !== sha256) {
        throw new WrongBytesError(file.url, sha256, journal.expected);
      }
      await this.#note(journalLine({ part: index, sha256 }));
    }
  }

  #checkAborted(): void {
    if (this.#abort.signal.aborted) throw cancelledError(this.#abort.signal);
  }

  #tell(): void {
    const isDone = this.#loadedBytes === this.#totalBytes;
    if (!isDone && this.#loadedBytes - this.#toldBytes < PROGRESS_BYTES) return;
    this.#toldBytes = this.#loadedBytes;
    this.#task.onProgress(this.#loadedBytes, this.#totalBytes);
  }
}

/** All bytes came, and they are others than they should be. Nothing of them is kept. */
export class WrongBytesError extends PagewiseError {
  /** Both hashes in hexadecimal. */
  constructor(url: string, sha256: string, expected: string) {
    const message = `${url} has the SHA-256 ${sha256}, it should have ${expected}: nothing of it was kept`;
    super('corrupt_model', message, { url });
  }
}
