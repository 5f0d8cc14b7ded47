import { describe, expect, test } from 'vitest';
import { ModelReader } from '../src/reader.js';
import { environment, expectBytes, FILE, open, ranges, serve, whole } from './reading-server.js';

describe('mirrors', () => {
  test('the first that answers is used', async () => {
    const missing = await serve((_request, response) => void response.writeHead(404).end());
    const page = await serve((_request, response) => void response.writeHead(200).end('<html>'));
    const good = await serve(ranges());
    await expectBytes(open([missing.url, page.url, good.url]), 1_000_000, 10);
  });

  test('when none answers, the first failure is told', async () => {
    const missing = await serve((_request, response) => void response.writeHead(404).end());
    const denied = await serve((_request, response) => void response.writeHead(403).end());
    await expect(open([missing.url, denied.url]).partLength(0)).rejects.toMatchObject({
      status: 404,
      url: missing.url,
    });
  });
});

describe('a server without ranges', () => {
  test('sends the file once, and it is read from there', async () => {
    const { url, requests } = await serve(whole);
    const reader = open(url);
    expect(await reader.partLength(0)).toBe(FILE.length);
    for (const at of [2_000_000, 0, FILE.length - 10]) await expectBytes(reader, at, 10);
    await expectBytes(reader, 0, FILE.length);
    expect(requests.length).toBe(1);
  });

  test('that does not tell the size is read to the end', async () => {
    const { url } = await serve((_request, response) => {
      response.writeHead(200);
      response.write(FILE.subarray(0, 1000));
      setTimeout(() => response.end(FILE.subarray(1000)), 20);
    });
    const reader = open(url);
    expect(await reader.partLength(0)).toBe(FILE.length);
    await expectBytes(reader, 2_999_990, 10);
  });

  test('that breaks off is asked again, and what is there is skipped', async () => {
    let isFirst = true;
    const { url, requests } = await serve((request, response, range) => {
      if (!isFirst) return whole(request, response, range);
      isFirst = false;
      response.writeHead(200, { 'content-length': FILE.length });
      response.write(FILE.subarray(0, 500_000), () => setTimeout(() => response.destroy(), 20));
    });
    const reader = open(url);
    await expectBytes(reader, 0, FILE.length);
    expect(requests.length).toBe(2);
  });

  test('keeps files of several blobs', async () => {
    const long = Buffer.alloc(17 * 1024 * 1024, 7);
    long.write('GGUF', 0);
    long.write('end', long.length - 3);
    const { url } = await serve((_request, response) => void response.writeHead(200).end(long));
    const reader = open(url);
    expect(await reader.partLength(0)).toBe(long.length);
    expect(Buffer.compare(await reader.read(0, 0, long.length), long)).toBe(0);
    expect(Buffer.from(await reader.read(0, long.length - 3, 3)).toString()).toBe('end');
  });

  test('refuses files that are too large for that', async () => {
    const length = 3 * 1024 ** 3;
    const { url } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': length });
      response.write(FILE.subarray(0, 1000));
    });
    const failure = { code: 'network', message: expect.stringMatching(/cannot send ranges.*2147483648/) };
    await expect(open(url).partLength(0)).rejects.toMatchObject(failure);
  });
});

describe('files', () => {
  const file = new File([FILE], 'x.gguf');
  const reader = (): ModelReader =>
    new ModelReader({ id: 'x', parts: [{ kind: 'blob', blob: file, name: 'x.gguf' }], headers: {} }, environment);

  test('are read by ranges', async () => {
    expect(await reader().partLength(0)).toBe(FILE.length);
    await expectBytes(reader(), 1_000_000, 1000);
    await expect(reader().read(0, FILE.length, 1)).rejects.toMatchObject({ code: 'corrupt_model' });
    await expect(reader().read(1, 0, 1)).rejects.toMatchObject({ code: 'corrupt_model' });
  });
});
