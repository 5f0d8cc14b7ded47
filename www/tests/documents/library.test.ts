/** The library: what is kept, what is refused and why, search over several documents. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DocumentLibrary, type Sizing } from '../../src/documents/library';
import { DocumentError } from '../../src/documents/records';
import { measureCharacters } from '../../src/documents/split';
import { DOCUMENTS_DATABASE, DocumentStore } from '../../src/documents/store';

const readPdf = vi.hoisted(() => vi.fn());
vi.mock('../../src/documents/pdf', () => ({ readPdf }));

const sizing = (): Sizing => ({ measure: measureCharacters, unit: 'characters', limit: 400 });
const file = (name: string, text: string): File => new File([text], name);
let library: DocumentLibrary;

beforeEach(() => {
  library = new DocumentLibrary();
});
afterEach(async () => {
  library.close();
  await new Promise((resolve) => {
    indexedDB.deleteDatabase(DOCUMENTS_DATABASE).onsuccess = resolve;
  });
});

const codes = (): string[] => library.problems.value.map(({ name, code }) => `${name} ${code}`);

describe('documents', () => {
  it('are kept with their passages, which know where they stand', async () => {
    const [added] = await library.add([file('a.md', '# Shop\n\n## Tents\n\nDry.\n\n## Lamps\n\nTwo years.')], sizing);
    expect(added).toMatchObject({ name: 'a.md', title: 'Shop', kind: 'markdown', numPassages: 2, unit: 'characters' });
    expect(library.list.value?.map(({ id }) => id)).toEqual([added?.id]);
    const passages = await library.passagesOf(added?.id ?? '');
    expect(passages.map(({ index, title, path, file: of }) => [index, title, path, of])).toEqual([
      [1, 'Tents', ['Shop', 'Tents'], 'a.md'],
      [2, 'Lamps', ['Shop', 'Lamps'], 'a.md'],
    ]);
    // Another visit.
    const later = new DocumentLibrary();
    await vi.waitFor(() => expect(later.list.value).toHaveLength(1));
    expect((await later.search('lamps', 8)).map(({ passage }) => passage.text)).toEqual(['Two years.']);
    later.close();
  });

  it('with the same text count it, and a search finds it once, also when one of them is removed', async () => {
    await library.add([file('a.txt', 'Same words here.\n\nChapter 1\n\nOnly in A.')], sizing);
    const [b] = await library.add([file('b.md', '# B\n\nSame   words here.\n\n# C\n\nOnly in B.')], sizing);
    expect(b).toMatchObject({ numPassages: 2, numDuplicates: 1 });
    expect((await library.search('same', 8)).map(({ passage }) => passage.file)).toEqual(['a.txt']);
    const first = library.list.value?.find(({ name }) => name === 'a.txt');
    const undo = await library.delete(first?.id ?? '');
    expect((await library.search('same', 8)).map(({ passage }) => passage.file)).toEqual(['b.md']);
    await undo?.();
    expect((await library.search('same', 8)).map(({ passage }) => passage.file)).toEqual(['a.txt']);
  });

  it('are noticed when they come again under another name', async () => {
    await library.add([file('a.txt', 'Some words.'), file('b.txt', 'Some\nwords. ')], sizing);
    expect(library.list.value).toHaveLength(1);
    expect(codes()).toEqual(['b.txt known']);
  });
});

describe('files that are none', () => {
  it('are refused one by one, each with its reason, and cost the others nothing', async () => {
    const pdf = (name: string): File => file(name, '%PDF-1.4 …');
    readPdf
      .mockRejectedValueOnce(new DocumentError('encrypted'))
      .mockRejectedValueOnce(new DocumentError('broken'))
      .mockRejectedValueOnce(new DocumentError('stuck'))
      .mockResolvedValueOnce({ title: null, pages: [[], []] });
    const large = file('large.txt', 'x');
    Object.defineProperty(large, 'size', { value: 9e6 });
    const gone = file('gone.txt', 'x');
    gone.arrayBuffer = () => Promise.reject(new DOMException('gone', 'NotReadableError'));
    const files = [
      ...[file('empty.txt', ''), file('blank.md', ' \n '), file('picture.txt', 'a\0b'), large, gone],
      ...[file('renamed.pdf', 'no PDF'), pdf('locked.pdf'), pdf('torn.pdf'), pdf('slow.pdf'), pdf('scan.pdf')],
      file('good.txt', 'Words.'),
    ];
    const added = await library.add(files, sizing);
    expect(added.map(({ name }) => name)).toEqual(['good.txt']);
    expect(codes()).toEqual([
      'empty.txt empty',
      'blank.md empty',
      'picture.txt not_text',
      'large.txt too_large',
      'gone.txt unreadable',
      'renamed.pdf broken',
      'locked.pdf encrypted',
      'torn.pdf broken',
      'slow.pdf stuck',
      'scan.pdf scanned',
    ]);
    expect(library.readings.value).toEqual([]);
    library.dismiss(library.problems.value[0]?.id ?? '');
    expect(codes()).toHaveLength(9);
  });

  it('leave nothing behind where there is no room', async () => {
    await library.add([file('old.txt', 'Old words.')], sizing);
    const put = IDBObjectStore.prototype.put;
    let numPut = 0;
    vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (this: IDBObjectStore, value) {
      numPut += 1;
      const request = put.call(this, value);
      // In the middle of a document.
      if (numPut === 2) {
        this.transaction.abort();
        Object.defineProperty(this.transaction, 'error', { value: new DOMException('full', 'QuotaExceededError') });
      }
      return request;
    });
    await library.add([file('new.md', '# A\n\nOne.\n\n# B\n\nTwo.')], sizing);
    vi.restoreAllMocks();
    expect(codes()).toEqual(['new.md storage_full']);
    expect(library.list.value?.map(({ name }) => name)).toEqual(['old.txt']);
    const store = await DocumentStore.open();
    const [old] = await store.list();
    expect(await store.passagesOf(old?.id ?? '')).toHaveLength(1);
    expect(await library.search('two', 8)).toEqual([]);
    store.close();
  });

  it('say so where the browser keeps nothing', async () => {
    vi.spyOn(indexedDB, 'open').mockImplementation(() => {
      throw new DOMException('no', 'SecurityError');
    });
    const other = new DocumentLibrary();
    await other.add([file('a.txt', 'Words.')], sizing);
    expect(other.failure.value).toBe('forbidden');
    expect(other.problems.value.map(({ code }) => code)).toEqual(['not_stored']);
    vi.restoreAllMocks();
    other.close();
  });
});

describe('reading', () => {
  it('can be ended, and the next file is read', async () => {
    readPdf.mockImplementationOnce((_, { signal, onPage }) => {
      onPage(3, 10);
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    const adding = library.add([file('long.pdf', '%PDF-1.4'), file('next.txt', 'Words.')], sizing);
    await vi.waitFor(() => expect(library.readings.value[0]?.pages).toEqual({ done: 3, total: 10 }));
    library.cancel(library.readings.value[0]?.id ?? '');
    expect((await adding).map(({ name }) => name)).toEqual(['next.txt']);
    expect(codes()).toEqual([]);
  });

  it('of a PDF keeps its pages and its title', async () => {
    const item = { str: 'Dry and clean.', transform: [10, 0, 0, 10, 72, 700], hasEOL: true };
    readPdf.mockResolvedValueOnce({ title: 'A title', pages: [[], [item]] });
    const [added] = await library.add([file('a.pdf', '%PDF-1.4')], sizing);
    expect(added).toMatchObject({ title: 'A title', numPages: 2, kind: 'pdf' });
    expect(await library.passagesOf(added?.id ?? '')).toMatchObject([{ page: 2, title: 'A title' }]);
  });
});
