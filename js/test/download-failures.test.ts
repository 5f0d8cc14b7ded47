import { beforeEach, describe, expect, test } from 'vitest';
import { headerLine, journalLine, parseJournal } from '../src/journal.js';
import { MAX_DOWNLOAD_RETRIES } from '../src/retry.js';
import { StoredModels } from '../src/stored-models.js';
import {
  cutOff,
  disk,
  FILE,
  hold,
  load,
  models,
  NEWER,
  newDisk,
  repair,
  reset,
  SETTINGS,
  server,
  sha256,
  source,
  stored,
  URL_A,
  whenAsked,
} from './downloads.js';
import { type Asked, bodyOf } from './fake-server.js';

beforeEach(reset);

const HTML = { 'content-type': 'text/html; charset=utf-8' };

describe('a wrong answer is never a model', () => {
  test.each([
    ['a page', '<!doctype html>', HTML],
    ['a page without a type', '<html>', {}],
    ['a Git LFS pointer', 'version https://git-lfs.github.com/spec/v1\n', {}],
    ['something else', 'PK\u0003\u0004', {}],
  ])('%s', async (_, body, headers) => {
    server.intercept = () => new Response(body, { headers });
    await expect(load()).rejects.toMatchObject({ code: 'corrupt_model', url: URL_A });
    expect(await stored()).toBeUndefined();
    expect(disk.folders.flatMap((folder) => [...folder.entries.keys()])).not.toContain('part-0');
  });

  test('a page in between is waited for to go away', async () => {
    let numPages = 3;
    server.intercept = ({ range }) =>
      range?.[0] === 3000 && numPages-- > 0 ? new Response('<html>', { headers: HTML }) : undefined;
    await load();
    expect(server.waits).toEqual([300, 600, 1200]);
    expect(await stored()).toEqual([FILE]);
  });

  test('a request without an answer is ended and sent again', async () => {
    const silent: Asked[] = [];
    server.intercept = (asked) => {
      if (asked.range?.[0] !== 3000 || silent.length > 0) return undefined;
      silent.push(asked);
      return new Promise(() => undefined);
    };
    await load();
    expect(silent.map(({ signal }) => signal.aborted)).toEqual([true]);
    expect(server.ranges.filter((range) => range === 'a 3000-6000')).toHaveLength(2);
    expect(await stored()).toEqual([FILE]);
  });

  test('a cut body is asked for again where it ended; one that stays so is an error', async () => {
    let isCut = false;
    server.intercept = (asked) => {
      if (asked.range?.[0] !== 3000 || isCut) return undefined;
      isCut = true;
      return new Response(bodyOf(FILE.subarray(3000, 4500), asked.signal), { status: 206 });
    };
    await load();
    expect(server.ranges).toContain('a 4500-6000');
    expect(await stored()).toEqual([FILE]);
    newDisk();
    server.intercept = ({ range, signal }) =>
      (range?.[0] ?? 0) < 3000 ? undefined : new Response(bodyOf(new Uint8Array(0), signal), { status: 206 });
    server.waits.length = 0;
    await expect(load()).rejects.toMatchObject({ code: 'network', message: /too few/ });
    expect(server.waits.length).toBeGreaterThanOrEqual(MAX_DOWNLOAD_RETRIES);
    expect(await stored()).toBeUndefined();
  });

  test('another range than asked is asked for again', async () => {
    let isFirst = true;
    server.intercept = (asked, file) => {
      if (asked.range?.[0] !== 3000 || !isFirst) return undefined;
      isFirst = false;
      return server.answer({ ...asked, range: [0, 3000] }, file);
    };
    await load();
    expect(isFirst).toBe(false);
    expect(await stored()).toEqual([FILE]);
  });

  test('bytes with another hash are removed', async () => {
    const spec = source({ sha256: sha256(NEWER) });
    await expect(load(spec)).rejects.toMatchObject({ code: 'corrupt_model', message: new RegExp(sha256(FILE)) });
    expect(disk.folders).toEqual([]);
    await load(source({ sha256: sha256(FILE) }));
    expect(await stored()).toEqual([FILE]);
  });

  test('another size than the registry’s is refused before it is fetched', async () => {
    await expect(load({ ...source(), bytes: 5 })).rejects.toMatchObject({ code: 'corrupt_model' });
    expect(server.ranges).toEqual([]);
  });

  test('a stored model that the registry has another hash for is fetched anew', async () => {
    await load();
    server.files.set(URL_A, { bytes: NEWER, etag: '"2"' });
    const spec = source({ sha256: sha256(NEWER) });
    expect(await stored(spec)).toBeUndefined();
    cutOff(2);
    await expect(load(spec)).rejects.toMatchObject({ code: 'network' });
    expect(await models().list()).toMatchObject([{ isComplete: false }]);
    repair();
    await load(spec);
    expect(await stored(spec)).toEqual([NEWER]);
  });
});

test('a line of the journal that lost its end costs itself alone', () => {
  const remote = { url: URL_A, size: 3000, etag: null, modified: null };
  const text = [
    headerLine({ id: 'm', urls: [URL_A], chunkBytes: 1000 }),
    journalLine({ part: 0, ...remote, expected: null }),
    journalLine({ part: 0, chunk: 2 }).slice(0, -3),
    journalLine({ part: 0, chunk: 1 }),
  ].join('');
  expect(parseJournal(text)?.parts[0]).toEqual({ ...remote, expected: null, chunks: new Set([1]) });
  expect(parseJournal(text.replace('"version":1', '"version":2'))).toBeUndefined();
});

describe('room', () => {
  test('is asked for before anything is fetched', async () => {
    disk.told = { usage: 1000, quota: 11_000 };
    const message = /10500 bytes asked, 10000 free/;
    await expect(load()).rejects.toMatchObject({ code: 'storage_full', message });
    expect(server.ranges).toEqual([]);
    disk.told = { usage: 1000, quota: 11_500 };
    await load();
  });

  test('that runs out keeps what is there, and the download goes on when there is some', async () => {
    disk.quota = 6000;
    const estimates = [{}, { usage: 5000, quota: 6000 }];
    const environment = { ...disk.environment, estimate: async () => estimates.shift() ?? {} };
    const full = new StoredModels(environment, server.network, SETTINGS).download(source());
    await expect(full).rejects.toMatchObject({ code: 'storage_full', message: /10500 bytes asked, 1000 free/ });
    const [part] = await models().list();
    expect(part?.storedBytes).toBeGreaterThan(0);
    // What is there needs no room again.
    disk.quota = 20_000;
    disk.told = { usage: 0, quota: FILE.length - (part?.storedBytes ?? 0) };
    await load();
    expect(await stored()).toEqual([FILE]);
  });

  test('that the browser does not give at all', async () => {
    const open = () => Promise.reject(new DOMException('no', 'SecurityError'));
    const none = new StoredModels({ ...disk.environment, open }, server.network);
    for (const call of [none.list(), none.find(source()), none.delete(source()), none.download(source())]) {
      await expect(call).rejects.toMatchObject({ code: 'storage_full', message: /SecurityError/ });
    }
  });
});

describe('an abort', () => {
  test('at any request, any write and any report ends the download, and the next one goes on', async () => {
    let numAborts = 0;
    for (let stage = 0; ; stage++) {
      newDisk();
      const controller = new AbortController();
      let numEvents = 0;
      const tick = (): void => {
        if (numEvents++ === stage) controller.abort();
      };
      server.intercept = () => void tick();
      disk.onWrite = tick;
      const given = await load(source(), { signal: controller.signal, onProgress: tick }).catch(({ code }) => code);
      if (numEvents <= stage) break;
      // The last events may come when nothing is left to do.
      if (given === 'cancelled') numAborts += 1;
      else expect(await stored()).toEqual([FILE]);
      repair();
      disk.onWrite = () => undefined;
      await load();
      expect(await stored()).toEqual([FILE]);
    }
    expect(numAborts).toBeGreaterThan(20);
  });

  test('while it waits to try again, and says why', async () => {
    const controller = new AbortController();
    const sleep = (): Promise<void> => {
      controller.abort('enough');
      return new Promise(() => undefined);
    };
    cutOff(2);
    const waiting = new StoredModels({ ...disk.environment, locks: undefined }, { ...server.network, sleep }, SETTINGS);
    const given = waiting.download(source(), { signal: controller.signal });
    await expect(given).rejects.toMatchObject({ code: 'cancelled', cause: 'enough' });
  });

  test('before it starts, or while another tab has the model', async () => {
    await expect(load(source(), { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' });
    expect(server.requests).toEqual([]);
    const controller = new AbortController();
    const release = hold();
    const first = load();
    await whenAsked();
    const second = load(source(), { signal: controller.signal });
    setTimeout(() => controller.abort());
    await expect(second).rejects.toMatchObject({ code: 'cancelled' });
    release();
    await first;
    expect(await stored()).toEqual([FILE]);
  });
});

describe('others', () => {
  test('that download the same model wait and find it', async () => {
    const release = hold();
    const loading = [load(), load()];
    await whenAsked();
    release();
    const [one, two] = await Promise.all(loading);
    expect(server.ranges.length).toBe(4);
    expect(two?.model).toEqual(one?.model);
    expect(await stored()).toEqual([FILE]);
  });

  test('cannot remove it meanwhile', async () => {
    const release = hold();
    const loading = load();
    await whenAsked();
    await expect(models().delete(source())).rejects.toMatchObject({ code: 'bad_request' });
    release();
    await loading;
    expect(await models().delete(source())).toBe(true);
    expect(await models().delete(source())).toBe(false);
    expect(disk.folders).toEqual([]);
  });

  test('may hold a file for a moment after they have ended', async () => {
    cutOff(2);
    await expect(load()).rejects.toMatchObject({ code: 'network' });
    repair();
    const file = disk.file('part-0');
    file.isLocked = true;
    setTimeout(() => {
      file.isLocked = false;
    }, 60);
    await load();
    expect(await stored()).toEqual([FILE]);
  });
});

describe('what the browser took', () => {
  test.each(['all of a part', 'the end of a part', 'the journal'])('%s', async (what) => {
    await load();
    if (what === 'all of a part') disk.folders[0]?.entries.delete('part-0');
    if (what === 'the end of a part') disk.file('part-0').bytes = FILE.slice(0, -1);
    if (what === 'the journal') disk.folders[0]?.entries.delete('journal');
    expect(await stored()).toBeUndefined();
    expect(await models().list()).toEqual([]);
    expect(disk.folders).toEqual([]);
    await load();
    expect(await stored()).toEqual([FILE]);
  });
});
