import { beforeEach, describe, expect, test } from 'vitest';
import {
  cutOff,
  disk,
  FILE,
  load,
  models,
  NEWER,
  newDisk,
  repair,
  reset,
  server,
  sha256,
  source,
  stored,
  URL_A,
} from './downloads.js';
import { bodyOf, modelFile } from './fake-server.js';

beforeEach(reset);

describe('a download', () => {
  test('is stored whole, by parallel ranges that do not overlap, and needs no network after that', async () => {
    const { model } = await load();
    expect(model).toEqual({
      id: 'm',
      name: 'm',
      urls: [URL_A],
      bytes: FILE.length,
      storedBytes: FILE.length,
      isComplete: true,
      sha256: [sha256(FILE)],
    });
    expect(server.ranges).toEqual(['a 0-3000', 'a 3000-6000', 'a 6000-9000', 'a 9000-10500']);
    expect(disk.numConflicts).toBe(0);
    expect(await stored()).toEqual([FILE]);
    const { length } = server.requests;
    await load();
    expect(server.requests.length).toBe(length);
    expect(await models().list()).toEqual([model]);
  });

  test('tells exact progress', async () => {
    const told: number[] = [];
    cutOff(2);
    const onProgress = (loaded: number, total: number): void => {
      expect(total).toBe(FILE.length);
      told.push(loaded);
    };
    await expect(load(source(), { onProgress })).rejects.toMatchObject({ code: 'network' });
    const { storedBytes } = (await models().list())[0] as { storedBytes: number };
    repair();
    const after: number[] = [];
    await load(source(), { onProgress: (loaded) => void after.push(loaded) });
    expect(told[0]).toBe(0);
    expect(after[0]).toBe(storedBytes);
    expect(storedBytes).toBeGreaterThan(0);
    expect([...after].sort((a, b) => a - b)).toEqual(after);
    expect(after.at(-1)).toBe(FILE.length);
  });

  test('sends the caller’s headers, and If-Range to the page’s own origin only', async () => {
    const own = 'https://own.example/a';
    server.files.set(own, { bytes: FILE, etag: '"1"' });
    await load({ ...source({}, own), headers: { Authorization: 'Bearer x' } });
    expect(server.requests.every(({ headers }) => headers.Authorization === 'Bearer x')).toBe(true);
    expect(server.requests.at(-1)?.headers['If-Range']).toBe('"1"');
    expect(disk.journal).not.toContain('Bearer');
    await load();
    expect(server.requests.at(-1)?.headers['If-Range']).toBeUndefined();
  });

  test('works where Content-Range is hidden, and where there are no ranges', async () => {
    server.files.set(URL_A, { bytes: FILE, isShy: true });
    await load();
    expect(await stored()).toEqual([FILE]);
    const whole = 'https://files.example/w';
    server.files.set(whole, { bytes: FILE, isWhole: true });
    let isFirst = true;
    server.intercept = (asked, file) => {
      if (asked.range !== undefined || !isFirst) return undefined;
      isFirst = false;
      return server.answer(asked, file, 4500);
    };
    await load(source({}, whole));
    expect(isFirst).toBe(false);
    expect(await stored(source({}, whole))).toEqual([FILE]);
  });

  test('of a size that nobody tells is refused', async () => {
    server.intercept = ({ signal }) => new Response(bodyOf(FILE, signal));
    await expect(load()).rejects.toMatchObject({ code: 'network', message: expect.stringContaining('size') });
  });

  test('of several parts is one model', async () => {
    const second = 'https://files.example/b';
    server.files.set(second, { bytes: NEWER.slice(0, 2000), etag: '"b"' });
    const spec = source({}, URL_A, second);
    const { model } = await load(spec);
    expect([model.bytes, model.urls, model.sha256.length]).toEqual([12_500, [URL_A, second], 2]);
    expect(await stored(spec)).toEqual([FILE, NEWER.slice(0, 2000)]);
    expect(await models().find(source())).toBeUndefined();
  });

  test('uses a mirror where the first address has nothing', async () => {
    const spec = source();
    spec.parts = [{ kind: 'url', urls: ['https://files.example/none', URL_A] }];
    await load(spec);
    expect(await stored(spec)).toEqual([FILE]);
  });
});

describe('going on', () => {
  test('fetches only what is missing, after the network was gone', async () => {
    cutOff(2);
    await expect(load()).rejects.toMatchObject({ code: 'network', status: 503 });
    expect(await stored()).toBeUndefined();
    const [part] = await models().list();
    expect(part).toMatchObject({ isComplete: false, bytes: FILE.length, sha256: [] });
    repair();
    await load();
    const numFetched = server.requests.reduce((sum, { range }) => sum + (range ? range[1] - range[0] : 0), 0) - 16;
    expect(numFetched).toBe(FILE.length - (part?.storedBytes ?? 0));
    expect(numFetched).toBeLessThan(FILE.length);
    expect(await stored()).toEqual([FILE]);
  });

  test('survives a journal that lost its end, and a file that lost more than that', async () => {
    cutOff(3);
    await expect(load()).rejects.toMatchObject({ code: 'network' });
    const journal = disk.file('journal');
    journal.bytes = journal.bytes.slice(0, -4);
    repair();
    cutOff(2);
    await expect(load()).rejects.toMatchObject({ code: 'network' });
    repair();
    disk.file('part-0').bytes = disk.file('part-0').bytes.slice(0, 500);
    await load();
    expect(await stored()).toEqual([FILE]);
  });

  test('does not mix two versions of a file', async () => {
    cutOff(3);
    await expect(load()).rejects.toMatchObject({ code: 'network' });
    repair();
    server.files.set(URL_A, { bytes: NEWER, etag: '"2"' });
    await load();
    expect(server.ranges.length).toBe(4);
    expect(await stored()).toEqual([NEWER]);
  });

  test('starts anew when the size is another one, whatever else the server says', async () => {
    cutOff(3);
    await expect(load()).rejects.toMatchObject({ code: 'network' });
    repair();
    const shorter = NEWER.slice(0, 2500);
    server.files.set(URL_A, { bytes: shorter, etag: '"1"' });
    await load();
    expect(await stored()).toEqual([shorter]);
  });

  test('starts anew when another hash is asked for', async () => {
    server.files.set(URL_A, { bytes: FILE });
    cutOff(3);
    await expect(load(source({ sha256: sha256(FILE) }))).rejects.toMatchObject({ code: 'network' });
    repair();
    server.files.set(URL_A, { bytes: NEWER });
    await load(source({ sha256: sha256(NEWER) }));
    expect(await stored()).toEqual([NEWER]);
  });

  test.each([
    ['with a hash', { sha256: sha256(FILE) }, FILE],
    ['without one, anew', {}, NEWER],
  ])('at a mirror, %s', async (_, more, bytes) => {
    const spec = source();
    const mirror = 'https://files.example/b';
    spec.parts = [{ kind: 'url', urls: [URL_A, mirror], ...more }];
    cutOff(3);
    await expect(load(spec)).rejects.toMatchObject({ code: 'network' });
    repair();
    server.files.delete(URL_A);
    server.files.set(mirror, { bytes, etag: bytes === FILE ? '"2"' : '"1"' });
    await load(spec);
    expect(server.ranges.length < 4).toBe(bytes === FILE);
    expect(await stored(spec)).toEqual([bytes]);
  });

  test.each([true, false])(
    'starts anew when only the size says that the file changed (ranges: %s)',
    async (isRanged) => {
      const longer = modelFile(12_000, 3);
      server.files.set(URL_A, { bytes: FILE, isWhole: !isRanged });
      let numAsked = 0;
      server.intercept = (asked, file) => {
        if (asked.range?.[1] === 16 || asked.method === 'HEAD') return undefined;
        numAsked += 1;
        if (numAsked !== (isRanged ? 3 : 1)) return undefined;
        server.files.set(URL_A, { bytes: longer, isWhole: !isRanged });
        return isRanged ? server.answer(asked, server.files.get(URL_A)) : server.answer(asked, file, 4500);
      };
      await load();
      expect(await stored()).toEqual([longer]);
    },
  );

  test('notices what is gone although the journal has it', async () => {
    server.intercept = ({ range }) => (range?.[0] === 3000 ? new Response(null, { status: 404 }) : undefined);
    await expect(load()).rejects.toMatchObject({ code: 'network', status: 404 });
    repair();
    disk.file('part-0').bytes = disk.file('part-0').bytes.slice(0, 2500);
    await load();
    expect(await stored()).toEqual([FILE]);
  });

  test('starts anew, once, when the file changes meanwhile', async () => {
    server.intercept = (asked) => {
      if (asked.range?.[0] === 6000) server.files.set(URL_A, { bytes: NEWER, etag: '"2"' });
      return undefined;
    };
    await load();
    expect(await stored()).toEqual([NEWER]);
  });

  test.each(['https://own.example/a', URL_A])('gives up on %s, which changes all the time', async (url) => {
    let version = 0;
    server.files.set(url, { bytes: FILE, etag: '"0"' });
    server.intercept = (asked, file) => {
      version += 1;
      return server.answer(asked, { ...file, bytes: FILE, etag: `"${version}"` });
    };
    await expect(load(source({}, url))).rejects.toMatchObject({ code: 'network', message: /changed/ });
    expect(await models().find(source({}, url))).toBeUndefined();
  });

  test('without a version to compare needs a hash', async () => {
    for (const [more, isContinued] of [
      [{}, false],
      [{ sha256: sha256(FILE) }, true],
    ] as const) {
      newDisk();
      server.files.set(URL_A, { bytes: FILE });
      cutOff(3);
      await expect(load(source(more))).rejects.toMatchObject({ code: 'network' });
      repair();
      await load(source(more));
      expect(server.ranges.length < 4).toBe(isContinued);
      expect(await stored()).toEqual([FILE]);
    }
  });
});
