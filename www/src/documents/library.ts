/** The visitor's documents: reading them in, the list, search. One for the whole page; other tabs are kept in step. */
import { type Signal, signal } from '@preact/signals';
import { isCancelled } from '../state/problem';
import { dedupe, hashOf } from './dedupe';
import { readFile } from './read';
import {
  DocumentError,
  type DocumentProblemCode,
  type DocumentRecord,
  type PassageRecord,
  type SizeUnit,
} from './records';
import type { Hit } from './search';
import { type Measure, splitBlocks } from './split';
import { DocumentStore, type WholeDocument } from './store';

/** How passages are measured when a document comes in. */
export interface Sizing {
  readonly measure: Measure;
  readonly unit: SizeUnit;
  /** Largest size of a passage. */
  readonly limit: number;
}

/** Files of a document are read one after another; this is the one at work, or one that waits. */
export interface Reading {
  readonly id: string;
  readonly name: string;
  /** Pages that were read, of a PDF; null before the first. */
  readonly pages: { readonly done: number; readonly total: number } | null;
}

/** A file that was not taken. */
export interface DocumentProblem {
  readonly id: string;
  readonly name: string;
  readonly code: DocumentProblemCode;
}

/** A passage that was found. */
export interface Found extends Hit {
  readonly passage: PassageRecord;
}

/** Most passages of all documents: what can be searched at once in a page. */
export const MAX_PASSAGES_IN_ALL = 20_000;

const CHANNEL = 'pagewise.documents';
let numReadings = 0;

export class DocumentLibrary {
  /** The newest first; null until they were read. */
  readonly list: Signal<readonly DocumentRecord[] | null> = signal(null);
  readonly readings: Signal<readonly Reading[]> = signal([]);
  readonly problems: Signal<readonly DocumentProblem[]> = signal([]);
  /** Why nothing is kept: the browser forbids it, or everything was erased; null if it is. */
  readonly failure: Signal<'forbidden' | 'erased' | null> = signal(null);
  private readonly opened: Promise<DocumentStore | null>;
  private readonly channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel(CHANNEL);
  private readonly aborts = new Map<string, AbortController>();
  private queue: Promise<unknown> = Promise.resolve();
  private index: Promise<import('./search').PassageIndex> | null = null;

  constructor() {
    this.opened = DocumentStore.open(() => {
      this.failure.value = 'erased';
      this.list.value = [];
      this.index = null;
    }).catch(() => {
      this.failure.value = 'forbidden';
      return null;
    });
    if (this.channel) this.channel.onmessage = () => void this.refresh();
    void this.refresh();
  }

  /** The database, or null where there is none. */
  private store(): Promise<DocumentStore | null> {
    return this.failure.peek() ? Promise.resolve(null) : this.opened;
  }

  /** Reads the list anew; the index is made again with the next search. */
  async refresh(): Promise<void> {
    this.index = null;
    const list = (await (await this.store())?.list().catch(() => [])) ?? [];
    this.list.value = list;
  }

  /** Takes files in, one after another; resolves with those that were taken. Never rejects. */
  async add(files: readonly File[], sizing: () => Sizing): Promise<DocumentRecord[]> {
    const readings = files.map((file) => ({ id: `reading ${++numReadings}`, name: file.name, pages: null }));
    this.readings.value = [...this.readings.peek(), ...readings];
    for (const { id } of readings) this.aborts.set(id, new AbortController());
    const work = files.map((file, at) => {
      const id = readings[at]?.id ?? '';
      const result = this.queue.then(() => this.take(id, file, sizing()));
      this.queue = result;
      return result;
    });
    return (await Promise.all(work)).filter((taken) => taken !== null);
  }

  /** Ends the reading of a file. */
  cancel(reading: string): void {
    this.aborts.get(reading)?.abort(new DOMException('cancelled', 'AbortError'));
  }

  dismiss(problem: string): void {
    this.problems.value = this.problems.peek().filter(({ id }) => id !== problem);
  }

  private async take(reading: string, file: File, sizing: Sizing): Promise<DocumentRecord | null> {
    const signal = this.aborts.get(reading)?.signal ?? new AbortController().signal;
    try {
      signal.throwIfAborted();
      return await this.read(reading, file, sizing, signal);
    } catch (error) {
      if (signal.aborted || isCancelled(error)) return null;
      const code = error instanceof DocumentError ? error.code : 'unreadable';
      this.problems.value = [...this.problems.peek(), { id: reading, name: file.name, code }];
      return null;
    } finally {
      this.aborts.delete(reading);
      this.readings.value = this.readings.peek().filter(({ id }) => id !== reading);
    }
  }

  private async read(reading: string, file: File, sizing: Sizing, signal: AbortSignal): Promise<DocumentRecord> {
    const store = await this.store();
    if (!store) throw new DocumentError('not_stored');
    const onPage = (done: number, total: number): void => {
      const at = this.readings.peek();
      this.readings.value = at.map((one) => (one.id === reading ? { ...one, pages: { done, total } } : one));
    };
    const { kind, title, blocks, numPages } = await readFile(file, { signal, onPage });
    const drafts = await splitBlocks(blocks, sizing);
    signal.throwIfAborted();
    const { unique, numDuplicates } = await dedupe(drafts);
    if (unique.length === 0) throw new DocumentError('empty');
    const hash = await hashOf(unique.map((one) => one.hash).join());
    if (await store.find(hash)) throw new DocumentError('known');
    const id = crypto.randomUUID();
    const passages = unique.map((draft, at): PassageRecord => {
      const place = { path: draft.path, page: draft.page, text: draft.text, hash: draft.hash, size: draft.size };
      const index = at + 1;
      return {
        id: `${id}/${index}`,
        document: id,
        file: file.name,
        index,
        title: draft.path.at(-1) ?? title,
        ...place,
      };
    });
    const numKnown = await store.countKnown(passages.map((passage) => passage.hash));
    const total = (this.list.peek() ?? []).reduce((sum, { numPassages }) => sum + numPassages, passages.length);
    if (total > MAX_PASSAGES_IN_ALL) throw new DocumentError('too_many');
    const document: DocumentRecord = {
      ...{ id, name: file.name, title, kind, bytes: file.size, added: Date.now(), numPages, hash },
      numPassages: passages.length,
      numDuplicates: numDuplicates + numKnown,
      unit: sizing.unit,
    };
    signal.throwIfAborted();
    await store.add({ document, passages });
    await this.changed();
    return document;
  }

  /** Removes a document; answers with how to bring it back. */
  async delete(id: string): Promise<(() => Promise<void>) | null> {
    const whole = await (await this.store())?.delete(id);
    await this.changed();
    return whole ? () => this.restore(whole) : null;
  }

  private async restore(whole: WholeDocument): Promise<void> {
    await (await this.store())?.add(whole);
    await this.changed();
  }

  async passagesOf(document: string): Promise<readonly PassageRecord[]> {
    return (await (await this.store())?.passagesOf(document)) ?? [];
  }

  /** The passages that fit a question best, the best one first. */
  async search(question: string, limit: number): Promise<readonly Found[]> {
    const store = await this.store();
    if (!store || question.trim() === '') return [];
    const building = this.index ?? this.build(store);
    this.index = building;
    // What failed is tried again.
    building.catch(() => {
      if (this.index === building) this.index = null;
    });
    const hits = (await building).search(question, limit);
    const passages = new Map((await store.passages(hits.map(({ id }) => id))).map((passage) => [passage.id, passage]));
    return hits.flatMap((hit) => {
      const passage = passages.get(hit.id);
      return passage ? [{ ...hit, passage }] : [];
    });
  }

  private async build(store: DocumentStore): Promise<import('./search').PassageIndex> {
    const { PassageIndex } = await import('./search');
    const index = new PassageIndex();
    // The oldest first, so that of two documents with the same text always the same one is cited.
    for (const { id } of (await store.list()).reverse()) await index.add(await store.passagesOf(id));
    return index;
  }

  private async changed(): Promise<void> {
    this.channel?.postMessage('changed');
    await this.refresh();
  }

  /** Lets go of the database and the other tabs. */
  close(): void {
    this.channel?.close();
    for (const abort of this.aborts.values()) abort.abort();
    void this.opened.then((store) => store?.close());
  }
}
