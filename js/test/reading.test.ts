import { describe, expect, test } from 'vitest';
import { PagewiseError } from '../src/errors.js';
import { FIRST_BYTES } from '../src/http-part.js';
import { MAX_RETRIES } from '../src/retry.js';
import { expectBytes, FILE, type Handler, open, ranges, serve, servers, waits, whole } from './reading-server.js';

describe('a server with ranges', () => {
  test('is asked once for the size and the header', async () => {
    const { url, requests } = await serve(ranges());
    const reader = open(url);
    expect(await reader.partLength(0)).toBe(FILE.length);
    await expectBytes(reader, 0, 1000);
    await expectBytes(reader, 5, FIRST_BYTES - 5);
    expect(requests).toEqual([`0-${FIRST_BYTES - 1}`]);
  });

  test('serves reads that follow one another from one answer', async () => {
    const { url, requests } = await serve(ranges());
    const reader = open(url);
    await expectBytes(reader, FIRST_BYTES, 100_000);
    for (let at = FIRST_BYTES + 100_000; at + 100_000 < FILE.length; at += 100_000)
      await expectBytes(reader, at, 100_000);
    expect(requests.length).toBe(3);
    expect(requests[2]).toBe(`${FIRST_BYTES + 100_000}-${FILE.length - 1}`);
  });

  test('small gaps go on, jumps and steps back ask again', async () => {
    const { url, requests } = await serve(ranges());
    const reader = open(url);
    for (const at of [1_000_000, 1_001_000, 1_002_020]) await expectBytes(reader, at, 1000);
    expect(requests.length).toBe(3);
    await expectBytes(reader, 2_500_000, 1000);
    await expectBytes(reader, 1_000_000, 1000);
    await expectBytes(reader, FILE.length - 1, 1);
    expect(requests.length).toBe(6);
  });

  test('answers reads at the same time, each with its own bytes', async () => {
    const { url } = await serve(ranges());
    const reader = open(url);
    await Promise.all([2_000_000, 300_000, 2_000_500, 0].map((at) => expectBytes(reader, at, 400)));
  });

  test('gets the headers of the caller', async () => {
    let seen: unknown;
    const { url } = await serve((request, response, range) => {
      seen = request.headers.authorization;
      ranges()(request, response, range);
    });
    await open(url, { headers: { Authorization: 'Bearer x' } }).partLength(0);
    expect(seen).toBe('Bearer x');
  });

  test('that hides Content-Range is asked with HEAD', async () => {
    const { url, requests } = await serve((request, response, range) => {
      if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': FILE.length }).end();
      const [start, end] = range as [number, number];
      response.writeHead(206).end(FILE.subarray(start, end + 1));
    });
    const reader = open(url);
    expect(await reader.partLength(0)).toBe(FILE.length);
    expect(requests).toContain('HEAD');
    await expectBytes(reader, 2_000_000, 1000);
  });

  test('a read beyond the end is corrupt_model', async () => {
    const { url } = await serve(ranges());
    await expect(open(url).read(0, FILE.length - 1, 2)).rejects.toMatchObject({ code: 'corrupt_model' });
  });

  test('a file that changes meanwhile is an error', async () => {
    let version = 0;
    const { url } = await serve((request, response, range) =>
      ranges(FILE, { etag: `"${version++}"` })(request, response, range),
    );
    await expect(open(url).read(0, 1_000_000, 1)).rejects.toMatchObject({ code: 'network', message: /changed/ });
  });
});

describe('failures that pass', () => {
  test('a broken connection goes on at the byte it had reached', async () => {
    let numBroken = 0;
    const { url, requests } = await serve((request, response, range) => {
      const start = range?.[0] ?? 0;
      if (start < 1_000_000 || start >= 1_300_000) return ranges()(request, response, range);
      numBroken += 1;
      const contentRange = `bytes ${start}-${FILE.length - 1}/${FILE.length}`;
      response.writeHead(206, { 'content-range': contentRange, 'content-length': FILE.length - start });
      response.write(FILE.subarray(start, start + 100_000), () => setTimeout(() => response.destroy(), 20));
    });
    await expectBytes(open(url), 1_000_000, 1_000_000);
    expect(numBroken).toBeGreaterThan(1);
    const starts = requests.slice(1).map((range) => Number(range.split('-')[0]));
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    expect(new Set(starts).size).toBe(starts.length);
  });

  test('503 is tried again, with growing waits', async () => {
    let numLeft = 3;
    const { url } = await serve((request, response, range) => {
      if (range?.[0] === 1_000_000 && numLeft-- > 0) return void response.writeHead(503).end();
      ranges()(request, response, range);
    });
    await expectBytes(open(url), 1_000_000, 10);
    expect(waits).toEqual([300, 600, 1200]);
  });

  test('silence is a failure', async () => {
    let isSilent = true;
    const { url } = await serve((request, response, range) => {
      if (range?.[0] !== 1_000_000 || !isSilent) return ranges()(request, response, range);
      isSilent = false;
      response.writeHead(206, { 'content-range': `bytes 1000000-1000009/${FILE.length}` });
      response.write(FILE.subarray(1_000_000, 1_000_004));
    });
    await expectBytes(open(url), 1_000_000, 10);
    expect(isSilent).toBe(false);
  });
});

describe('the first answer', () => {
  /** A server that sends of every answer only the first `share`, and then ends or breaks it. */
  const cutting =
    (share: number, isBroken: boolean): Handler =>
    (_request, response, range) => {
      const start = range?.[0] ?? 0;
      const end = Math.min(range?.[1] ?? 0, FILE.length - 1) + 1;
      const body = FILE.subarray(start, start + Math.ceil((end - start) * share));
      const headers = { 'content-range': `bytes ${start}-${end - 1}/${FILE.length}` };
      response.writeHead(206, isBroken ? { ...headers, 'content-length': end - start } : headers);
      if (isBroken) response.write(body, () => setTimeout(() => response.destroy(), 10));
      else response.end(body);
    };

  test.each([false, true])('of a server that cuts every answer in half goes on (broken: %s)', async (isBroken) => {
    const { url, requests } = await serve(cutting(0.5, isBroken));
    const reader = open(url);
    await expectBytes(reader, 0, FIRST_BYTES);
    const starts = requests.map((range) => Number(range.split('-')[0]));
    expect(starts.slice(0, 3)).toEqual([0, FIRST_BYTES / 2, (FIRST_BYTES / 4) * 3]);
    expect(new Set(starts).size).toBe(starts.length);
    expect(starts.length).toBeGreaterThan(MAX_RETRIES + 1);
    await expectBytes(reader, FIRST_BYTES + 5, 100_000);
  });

  test('that brings nothing is given up, with the byte it had reached', async () => {
    const { url, requests } = await serve((request, response, range) =>
      cutting(range?.[0] === 0 ? 0.5 : 0, false)(request, response, range),
    );
    await expect(open(url).partLength(0)).rejects.toMatchObject({ code: 'network', url, offset: FIRST_BYTES / 2 });
    expect(requests.length).toBe(1 + MAX_RETRIES);
  });

  test('does not go on with another version of the file', async () => {
    let version = 0;
    const { url } = await serve((request, response, range) => {
      response.setHeader('etag', `"${version++}"`);
      cutting(0.5, false)(request, response, range);
    });
    await expect(open(url).partLength(0)).rejects.toMatchObject({ code: 'network', message: /changed/ });
  });

  test('that broke goes on only where ranges are sent', async () => {
    let isFirst = true;
    const { url } = await serve((request, response, range) => {
      const handler = isFirst ? cutting(0.5, true) : whole;
      isFirst = false;
      handler(request, response, range);
    });
    await expect(open(url).partLength(0)).rejects.toMatchObject({ code: 'network', message: /another range/ });
  });
});

describe('failures that stay', () => {
  test('too many are network, with address and offset', async () => {
    const { url, requests } = await serve((request, response, range) => {
      if (range?.[0] === 1_000_000) return void response.writeHead(502).end();
      ranges()(request, response, range);
    });
    const reader = open(url);
    await expect(reader.read(0, 1_000_000, 10)).rejects.toMatchObject({
      code: 'network',
      url,
      offset: 1_000_000,
      status: 502,
    });
    expect(requests.length).toBe(1 + 1 + MAX_RETRIES);
    expect(reader.failure).toBeInstanceOf(PagewiseError);
  });

  test('a host that is not there', async () => {
    const { url } = await serve(whole);
    servers.splice(0)[0]?.close().closeAllConnections();
    const failure = await open(url)
      .partLength(0)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'network', url, message: expect.stringContaining('CORS') });
    expect(waits.length).toBe(MAX_RETRIES);
  });

  test.each([
    [404, 'no such file'],
    [403, 'access denied'],
    [400, 'refused'],
  ])('%d is not tried again', async (status, message) => {
    const { url, requests } = await serve((_request, response) => void response.writeHead(status).end());
    await expect(open(url).partLength(0)).rejects.toMatchObject({
      code: 'network',
      status,
      url,
      message: new RegExp(message),
    });
    expect(requests.length).toBe(1);
  });

  test.each([
    ['<!doctype html><title>x</title>', 'a web page'],
    ['version https://git-lfs.github.com/spec/v1\n', 'Git LFS'],
  ])('%j instead of a model, with and without ranges', async (body, message) => {
    const bytes = Buffer.from(body);
    const all: Handler = (_request, response) => void response.writeHead(200).end(bytes);
    for (const handler of [ranges(bytes), all]) {
      const { url } = await serve(handler);
      const failure = { code: 'corrupt_model', url, message: new RegExp(message) };
      await expect(open(url).partLength(0)).rejects.toMatchObject(failure);
    }
  });

  test('a file that becomes another one while it is read, told by its version, or by its size', async () => {
    const other = Buffer.concat([FILE, Buffer.from('more')]);
    const changes = [
      [ranges(FILE, { etag: '"1"' }), ranges(FILE, { etag: '"2"' })],
      [ranges(FILE), ranges(other)],
    ] as const;
    for (const [first, then] of changes) {
      const { url, requests } = await serve((...asked) => (requests.length === 1 ? first : then)(...asked));
      const failure = { code: 'network', message: expect.stringContaining('changed while it was being read') };
      await expect(open(url).read(0, 1_000_000, 10)).rejects.toMatchObject(failure);
    }
  });

  test('a whole file that is another one when it is asked for again', async () => {
    const cases = [
      { headers: [{ etag: '"1"' }, { etag: '"2"' }], length: FILE.length },
      { headers: [{}, {}], length: FILE.length + 4 },
    ];
    for (const { headers, length } of cases) {
      const { url, requests } = await serve((_request, response) => {
        if (requests.length > 1) {
          response.writeHead(200, { ...headers[1], 'content-length': length }).end(Buffer.alloc(length, 1));
          return;
        }
        response.writeHead(200, { ...headers[0], 'content-length': FILE.length });
        response.write(FILE.subarray(0, 500_000), () => setTimeout(() => response.destroy(), 20));
      });
      const failure = { code: 'network', message: expect.stringContaining('changed while it was being read') };
      await expect(open(url).read(0, 0, FILE.length)).rejects.toMatchObject(failure);
    }
  });

  test('an empty file', async () => {
    const { url } = await serve(ranges(Buffer.alloc(0)));
    await expect(open(url).partLength(0)).rejects.toMatchObject({ code: 'corrupt_model', message: /empty/ });
  });

  test("another size than the registry's", async () => {
    const { url } = await serve(ranges());
    await expect(open(url, { bytes: 5 }).partLength(0)).rejects.toMatchObject({
      code: 'corrupt_model',
      message: /registry says 5/,
    });
  });

  test('closing ends a read', async () => {
    const { url } = await serve((request, response, range) => {
      if (range?.[0] === 0) return ranges()(request, response, range);
      response.writeHead(206, { 'content-range': `bytes ${range?.[0]}-${range?.[1]}/${FILE.length}` }).write('x');
    });
    const reader = open(url);
    const read = reader.read(0, 1_000_000, 10);
    setTimeout(() => reader.close(), 30);
    await expect(read).rejects.toBeInstanceOf(PagewiseError);
  });
});
