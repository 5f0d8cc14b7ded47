import { describe, expect, test, vi } from 'vitest';
import { Engine } from '../src/index.js';
import { browserMemory } from '../src/tuning-memory.js';
import { FakeWorker, fakeModel } from './fake.js';

/** Cache storage with one cache, or one that the browser forbids. */
function storage({ isForbidden = false, text = '' } = {}): { caches: CacheStorage; stored: () => string } {
  let stored = text;
  const cache = {
    match: async () => (stored === '' ? undefined : new Response(stored)),
    put: async (_: string, response: Response) => {
      stored = await response.text();
    },
  };
  const open = async (): Promise<unknown> => {
    if (isForbidden) throw new DOMException('no storage here', 'SecurityError');
    return cache;
  };
  return { caches: { open } as unknown as CacheStorage, stored: () => stored };
}

describe('the memory of choices', () => {
  test('keeps the latest choice of each key, and forgets the oldest keys', async () => {
    const { caches } = storage();
    const memory = browserMemory(caches, 'https://page.example', 'Browser/1');
    for (let index = 0; index < 70; index++) await memory.remember(`key ${index}`, 'first');
    await memory.remember('key 68', 'second');
    const remembered = await memory.recall();
    expect(Object.keys(remembered)).toHaveLength(64);
    expect(remembered).toMatchObject({ 'key 68': 'second', 'key 69': 'first' });
    expect(remembered).not.toHaveProperty('key 5');
    const afterAnUpdate = browserMemory(caches, 'https://page.example', 'Browser/2');
    expect(await afterAnUpdate.recall()).toEqual({});
  });

  test.each([
    ['no storage', undefined],
    ['storage that is forbidden', storage({ isForbidden: true }).caches],
    ['something else in its place', storage({ text: '{"a": 1}' }).caches],
    ['nonsense in its place', storage({ text: '[["a"' }).caches],
    ['entries of another form', storage({ text: '[["a", 1], "b", ["c"]]' }).caches],
  ])('with %s remembers nothing, without an error', async (_, caches) => {
    const memory = browserMemory(caches, 'https://page.example', 'Browser/1');
    expect(await memory.recall()).toEqual({});
    await expect(memory.remember('key', 'choice')).resolves.toBeUndefined();
  });
});

describe('a load', () => {
  const load = async (autotune: boolean, measured?: { key: string; choice: string }) => {
    const tunings = { recall: vi.fn(async () => ({ known: 'choice' })), remember: vi.fn(async () => undefined) };
    const worker = new FakeWorker({ tunings, engine: { measuredTuning: () => measured ?? null } });
    const loadEngine = vi.spyOn(worker.engine, 'module');
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker, autotune });
    expect(loadEngine).toHaveBeenCalled();
    expect(engine.info.tuning).toMatchObject({ source: 'table' });
    return tunings;
  };

  test('recalls what is known, and remembers what it measured', async () => {
    const tunings = await load(true, { key: 'gpu', choice: 'tiles' });
    expect(tunings.recall).toHaveBeenCalled();
    expect(tunings.remember).toHaveBeenCalledWith('gpu', 'tiles');
  });

  test('remembers nothing that was not measured', async () => {
    expect((await load(true)).remember).not.toHaveBeenCalled();
  });

  test('without autotune asks nobody', async () => {
    expect((await load(false)).recall).not.toHaveBeenCalled();
  });
});
