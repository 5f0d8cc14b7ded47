import { afterEach, describe, expect, test, vi } from 'vitest';
import { resolveSource } from '../src/source.js';

const entry = {
  id: 'tiny',
  name: 'Tiny',
  sources: ['tiny.gguf', 'https://mirror.example/tiny.gguf'],
  sha256: '0',
  bytes: 12,
  architecture: 'llama',
  quantisation: 'F16',
  licence: 'MIT',
};

function answer(response: () => Response | Promise<Response>): ReturnType<typeof vi.fn> {
  const fetch = vi.fn(async () => response());
  vi.stubGlobal('fetch', fetch);
  return fetch;
}

afterEach(() => vi.unstubAllGlobals());

describe('addresses', () => {
  test.each([
    ['https://x.example/a/Model.Q4_1.gguf?download=true', 'Model.Q4_1'],
    ['https://x.example/big-00001-of-00002.gguf', 'big'],
    [new URL('https://x.example/'), 'model'],
  ])('%s is %s', async (source, id) => {
    const spec = await resolveSource(source, { headers: { A: 'b' } });
    expect(spec).toEqual({ id, parts: [{ kind: 'url', urls: [String(source)] }], headers: { A: 'b' } });
  });

  test('are made absolute from the page', async () => {
    vi.stubGlobal('document', { baseURI: 'https://page.example/app/' });
    for (const [source, url] of [
      ['./m.gguf', 'https://page.example/app/m.gguf'],
      ['/m.gguf', 'https://page.example/m.gguf'],
      ['m.GGUF', 'https://page.example/app/m.GGUF'],
    ] as const) {
      expect((await resolveSource(source, {})).parts).toEqual([{ kind: 'url', urls: [url] }]);
    }
  });

  test('that are none are refused', async () => {
    await expect(resolveSource('http://', {})).rejects.toMatchObject({ code: 'bad_request' });
    await expect(resolveSource([], {})).rejects.toMatchObject({ code: 'bad_request', message: /empty list/ });
    await expect(resolveSource(3 as never, {})).rejects.toMatchObject({ code: 'bad_request' });
  });
});

describe('what fetch would refuse as if the network were down', () => {
  const url = 'https://x.example/m.gguf';

  test.each(['', '  ', [''], [url, ' ']])('an empty source %j', async (source) => {
    const fetch = answer(() => new Response('', { status: 404 }));
    await expect(resolveSource(source, {})).rejects.toMatchObject({ code: 'bad_request', message: /^source: an/ });
    expect(fetch).not.toHaveBeenCalled();
  });

  test.each(['', ' ', 3, {}])('a registry that is no address: %j', async (registry) => {
    const failure = { code: 'bad_request', message: expect.stringContaining('registry: an address is needed') };
    await expect(resolveSource('tiny', { registry: registry as never })).rejects.toMatchObject(failure);
  });

  test.each(['ftp://x.example/m.gguf', 'C:\\models\\m.gguf', 'file:///m.gguf', 'https://me:secret@x.example/m.gguf'])(
    '%s',
    async (source) => {
      const failure = await resolveSource(source, {}).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: 'bad_request', message: expect.stringContaining('cannot be fetched') });
      expect(String(failure)).not.toContain('secret');
    },
  );

  test("an address that a registry's entry has", async () => {
    answer(() => Response.json({ models: [{ ...entry, sources: ['http://'] }] }));
    const failure = { code: 'bad_request', message: expect.stringContaining('registry: tiny') };
    await expect(resolveSource('tiny', { registry: 'https://page.example/r.json' })).rejects.toMatchObject(failure);
  });

  test.each([
    [{ 'a b': 'secret' }, '"a b" is not a valid name'],
    [{ '': 'secret' }, '"" is not a valid name'],
    [{ A: 'secret\n' + 'B: c' }, '"A" is not a valid name, or its value'],
    [{ A: 'secret…' }, '"A" is not a valid name, or its value'],
    [{ A: undefined }, '"A": a text is needed'],
    [{ A: 3 }, '"A": a text is needed'],
    [{ range: 'secret' }, '"range" is Pagewise\'s own'],
    [new Headers({ A: 'secret' }), 'headers: a plain object'],
    [[['A', 'secret']], 'headers: a plain object'],
    [null, 'headers: a plain object'],
  ])('headers %o', async (headers, message) => {
    const failure = await resolveSource(url, { headers: headers as never }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'bad_request', message: expect.stringContaining(message) });
    expect(String(failure)).not.toContain('secret');
  });
});

describe('files', () => {
  test('alone and in parts, mixed with addresses', async () => {
    const file = new File(['x'], 'My Model.gguf');
    const blob = new Blob(['y']);
    expect(await resolveSource(file, {})).toMatchObject({ id: 'My Model', parts: [{ kind: 'blob', blob: file }] });
    expect(await resolveSource(blob, {})).toMatchObject({ id: 'model' });
    const spec = await resolveSource([file, 'https://x.example/b.gguf'], {});
    expect(spec.parts.map((part) => part.kind)).toEqual(['blob', 'url']);
  });
});

describe('registry ids', () => {
  test('become the addresses of their entry', async () => {
    const fetch = answer(() => Response.json({ models: [entry] }));
    const registry = 'https://page.example/models/registry.json';
    expect(await resolveSource('tiny', { registry })).toEqual({
      id: 'tiny',
      name: 'Tiny',
      registry,
      parts: [{ kind: 'url', urls: ['https://page.example/models/tiny.gguf', 'https://mirror.example/tiny.gguf'] }],
      bytes: 12,
      headers: {},
    });
    expect(fetch.mock.calls[0]?.[0]).toBe(registry);
  });

  test('bring their hash along, if it is one', async () => {
    const sha256 = 'AB'.repeat(32);
    for (const [given, expected] of [
      [sha256, { sha256: sha256.toLowerCase() }],
      ['unknown', {}],
    ] as const) {
      answer(() => Response.json({ models: [{ ...entry, sha256: given }] }));
      const { parts } = await resolveSource('tiny', { registry: 'https://page.example/r.json' });
      expect(parts).toEqual([{ kind: 'url', urls: expect.any(Array), ...expected }]);
    }
  });

  test('are looked up next to the page by default', async () => {
    vi.stubGlobal('document', { baseURI: 'https://page.example/app/index.html' });
    const fetch = answer(() => Response.json({ models: [entry] }));
    await resolveSource('tiny', {});
    expect(fetch.mock.calls[0]?.[0]).toBe('https://page.example/app/models/registry.json');
  });

  const registry = 'https://page.example/r.json';
  test('that are not there name those that are', async () => {
    answer(() => Response.json({ models: [entry] }));
    const failure = { code: 'bad_request', message: expect.stringMatching(/"huge".*it has tiny/) };
    await expect(resolveSource('huge', { registry })).rejects.toMatchObject(failure);
  });

  test.each([
    ['404', () => new Response('', { status: 404 }), 'answered 404'],
    ['a page', () => new Response('<html>'), 'is not JSON'],
    ['null', () => Response.json(null), 'has no list'],
    ['an entry without sources', () => Response.json({ models: [{ id: 'tiny', bytes: 1 }] }), 'has no list'],
    ['no network', () => Promise.reject(new TypeError('failed')), 'could not reach'],
  ])('%s instead of the registry', async (_name, response, message) => {
    answer(response);
    const failure = { code: 'network', url: registry, message: expect.stringContaining(message) };
    await expect(resolveSource('tiny', { registry })).rejects.toMatchObject(failure);
  });

  test('an abort while it is fetched', async () => {
    const controller = new AbortController();
    answer(() => {
      controller.abort();
      return Promise.reject(controller.signal.reason);
    });
    await expect(resolveSource('tiny', { registry, signal: controller.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
  });
});
