import { describe, expect, test, vi } from 'vitest';
import { type CacheEvent, Engine } from '../src/index.js';
import { checkMessages } from '../src/message-request.js';
import { checkChatRequest, checkTextRequest } from '../src/request.js';
import { FakeWorker, fakeModel } from './fake.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;

async function start(): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker();
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  return { engine, worker };
}

describe('a request', () => {
  test('uses the cache by default', () => {
    const expected = { enabled: true, priority: 0, pin: false, salt: '', breakpoints: [] };
    expect(checkChatRequest({ messages }, []).engineRequest.cache).toEqual(expected);
    expect(checkTextRequest({ prompt: 'a', cache: null }, []).engineRequest.cache).toEqual(expected);
  });

  test('says how', () => {
    const cache = { enabled: false, priority: -3, ttl_seconds: 1.5, pin: true, salt: 's', name: 'n' };
    const { engineRequest } = checkTextRequest({ prompt: 'a', cache, prompt_cache_key: 'n' }, []);
    const { ttl_seconds: _, ...same } = cache;
    expect(engineRequest.cache).toEqual({ ...same, group: 'n', ttlMs: 1500, breakpoints: [] });
  });

  test.each([
    [{ prompt_cache_key: 'key' }, 'key', 'key'],
    [{ prompt_cache_key: 'key', cache: { name: 'prefix' } }, 'key', 'prefix'],
    [{ cache: { name: 'prefix' } }, undefined, 'prefix'],
  ])('%j: the key is the group, and the name where there is none', (fields, group, name) => {
    const { cache } = checkTextRequest({ prompt: 'a', ...fields }, []).engineRequest;
    expect([cache.group, cache.name]).toEqual([group, name]);
  });

  test('ends prefixes after messages and parts, and the template sees none of it', () => {
    const marked = [
      { role: 'system', content: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'A', cache_control: { type: 'ephemeral' } },
          { type: 'text', text: 'B' },
        ],
      },
    ];
    const { engineRequest } = checkChatRequest({ messages: marked }, []);
    expect(engineRequest.cache.breakpoints).toEqual([
      { numMessages: 1, ttlMs: 3_600_000 },
      { numMessages: 2, content: 'A', ttlMs: 300_000 },
    ]);
    const plain = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'AB' },
    ];
    expect(engineRequest.input).toEqual({ messages: plain });
    expect(checkMessages(marked)).toEqual(plain);
  });

  test.each([
    [{ cache: true }, 'cache: a plain object is needed, true given'],
    [{ cache: new Map() }, 'cache: a plain object is needed'],
    [{ cache: { ttl: 1 } }, 'cache.ttl is not supported'],
    [{ cache: { enabled: 1 } }, 'cache.enabled: true or false is needed'],
    [{ cache: { priority: 0.5 } }, 'cache.priority: an integer'],
    [{ cache: { ttl_seconds: 0 } }, 'cache.ttl_seconds: a number over 0'],
    [{ cache: { pin: 'yes' } }, 'cache.pin: true or false'],
    [{ cache: { salt: 7 } }, 'cache.salt: a string'],
    [{ cache: { salt: '\u00e9'.repeat(129) } }, 'cache.salt: 258 bytes given, 256 allowed'],
    [{ prompt_cache_key: 1 }, 'prompt_cache_key: a string'],
    [{ prompt_cache_key: 'k'.repeat(257) }, 'prompt_cache_key: 257 bytes given, 256 allowed'],
  ])('refuses %j', (fields, message) => {
    expect(() => checkTextRequest({ prompt: 'a', ...fields }, [])).toThrow(message);
  });

  test.each([
    [{ type: 'persistent' }, 'messages[0].cache_control.type: "ephemeral" is needed'],
    [{ type: 'ephemeral', ttl: '2h' }, 'messages[0].cache_control.ttl: "5m" or "1h" is needed, "2h" given'],
    [{ type: 'ephemeral', scope: 1 }, 'messages[0].cache_control.scope is not supported'],
    ['ephemeral', 'messages[0].cache_control: an object is needed'],
  ])('refuses the mark %j', (cache_control, message) => {
    expect(() => checkMessages([{ role: 'user', content: 'a', cache_control }])).toThrow(message);
  });
});

describe('engine.cache', () => {
  test('shows what there is', async () => {
    const { engine } = await start();
    expect(await engine.cache.stats()).toMatchObject({ numNodes: 0, numDropped: 11 });
    const block = { group: 0, block: 7, numHolders: 1, cached: null };
    // Of a request that is not there any more, there is no name.
    expect(await engine.cache.blocks()).toEqual([{ ...block, holders: [{ request: '', choice: 0 }] }]);
    expect(await engine.cache.prefixes()).toEqual([]);
  });

  test('explains requests of both kinds, checked as those that are answered', async () => {
    const { engine, worker } = await start();
    const expected = { prompt_tokens: 3, cached_tokens: 2, miss: null, doctor: null };
    expect(await engine.cache.explain({ messages, model: 'Fake Model', stream: true })).toEqual(expected);
    expect(await engine.cache.explain({ prompt: 'a' })).toEqual(expected);
    expect(await engine.cache.explain({ prompt: [1, 2] })).toEqual(expected);
    expect(worker.engine.cacheCalls).toEqual([
      ['explain', { messages }],
      ['explain', { text: 'a' }],
      ['explain', { ids: [1, 2] }],
    ]);
    expect(worker.received.some(({ type }) => type === 'submit')).toBe(false);
    await expect(engine.cache.explain({ messages, model: 'another' })).rejects.toThrow(
      'model: "another" is not loaded',
    );
    await expect(engine.cache.explain({ messages: [] })).rejects.toMatchObject({ code: 'bad_request' });
    const both = { messages, prompt: 'a' };
    await expect(engine.cache.explain(both)).rejects.toThrow('prompt is not supported');
    await expect(engine.cache.explain(undefined as never)).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('chooses what is given up first', async () => {
    const { engine, worker } = await start();
    const tailAware = {
      kind: 'tail_aware' as const,
      ttftTargetMs: 200,
      prefillTokensPerS: 4000,
      nextTurnTokens: 100,
    };
    await engine.cache.setPolicy(tailAware);
    await engine.cache.setPolicy({ kind: 'lru' });
    expect(worker.engine.cacheCalls).toEqual([
      ['policy', tailAware],
      ['policy', { kind: 'lru' }],
    ]);
    const refused: [unknown, string][] = [
      [undefined, 'policy: an object is needed'],
      [{ kind: 'fifo' }, 'policy.kind: "lru" or "tail_aware" is needed, "fifo" given'],
      [{ kind: 'lru', ttftTargetMs: 1 }, 'policy.ttftTargetMs is not supported'],
      [{ ...tailAware, nextTurnTokens: undefined }, 'policy.nextTurnTokens: an integer is needed'],
      [{ ...tailAware, ttftTargetMs: 0.5 }, 'ttftTargetMs: an integer from 0'],
    ];
    for (const [policy, message] of refused) {
      await expect(engine.cache.setPolicy(policy as never)).rejects.toThrow(message);
    }
  });

  test('warms without an answer', async () => {
    const { engine, worker } = await start();
    const warmed = await engine.cache.warm(messages, { cache: { name: 'greeting', priority: 2 } });
    expect(warmed.usage.completion_tokens).toBe(0);
    expect(warmed.cache).toEqual({ read_tokens: 2, written_tokens: 1, miss: null });
    expect(worker.received.at(-1)).toMatchObject({
      type: 'submit',
      request: { prefillOnly: true, cache: { name: 'greeting', priority: 2 } },
    });
  });

  test('saves as a blob, and restores whatever holds its bytes', async () => {
    const { engine, worker } = await start();
    const events: CacheEvent[] = [];
    engine.cache.onEvent((event) => events.push(event));
    const blob = await engine.cache.save(messages, { salt: 's' });
    expect([...new Uint8Array(await blob.arrayBuffer())]).toEqual([1, 2, 3]);
    const bytes = Uint8Array.of(1, 2, 3);
    const options = { salt: 't', priority: 2, ttl_seconds: 60, pin: true, name: 'system' };
    expect(await engine.cache.restore(blob, options)).toEqual({ tokens: 32, blocks: 2 });
    expect(await engine.cache.restore(bytes)).toEqual({ tokens: 32, blocks: 2 });
    await engine.cache.restore(bytes.buffer);
    expect(bytes.byteLength, 'the caller keeps its own').toBe(3);
    const kept = { enabled: true, priority: 2, ttlMs: 60_000, pin: true, salt: 't', name: 'system', breakpoints: [] };
    const plain = { enabled: true, priority: 0, pin: false, salt: '', breakpoints: [] };
    expect(worker.engine.cacheCalls).toEqual([
      ['save', 's', { messages }],
      ['restore', [1, 2, 3], kept],
      ['restore', [1, 2, 3], plain],
      ['restore', [1, 2, 3], plain],
    ]);
    await vi.waitFor(() => expect(events).toHaveLength(3));
    expect(events[0]).toEqual({ kind: 'restored', position: 0, numTokens: 32, group: 0 });
  });

  test('refuses to save or to restore what is neither', async () => {
    const { engine } = await start();
    const bad = { code: 'bad_request' };
    await expect(engine.cache.save([])).rejects.toMatchObject(bad);
    await expect(engine.cache.save(messages, { pin: true } as never)).rejects.toThrow('save: pin is not supported');
    await expect(engine.cache.restore('text' as never)).rejects.toThrow(
      'restore: a Blob, an ArrayBuffer or a Uint8Array is needed, "text" given',
    );
    await expect(engine.cache.restore(new Uint16Array(2) as never)).rejects.toMatchObject(bad);
    await expect(engine.cache.restore(new Blob(), { enabled: true } as never)).rejects.toThrow(
      'restore: enabled is not supported',
    );
    await expect(engine.cache.restore(new Blob(), { priority: 0.5 })).rejects.toThrow('priority: an integer');
    await expect(engine.cache.restore(Uint8Array.of(9))).rejects.toThrow('this is no saved prefix');
  });

  test('does not warm what is not to be cached', async () => {
    const { engine, worker } = await start();
    const warmed = engine.cache.warm(messages, { cache: { enabled: false } });
    await expect(warmed).rejects.toMatchObject({ code: 'bad_request', message: expect.stringMatching(/enabled/) });
    expect(worker.received.some(({ type }) => type === 'submit')).toBe(false);
  });

  test('takes no salt, name or key that would become another one on its way', async () => {
    const { engine } = await start();
    for (const text of ['\ud800', 'a\udc00b']) {
      for (const fields of [{ cache: { salt: text } }, { cache: { name: text } }, { prompt_cache_key: text }]) {
        expect(() => checkTextRequest({ prompt: 'a', ...fields }, [])).toThrow('surrogate');
      }
      await expect(engine.cache.pin([1], { salt: text })).rejects.toMatchObject({ code: 'bad_request' });
    }
    expect(checkTextRequest({ prompt: 'a', cache: { salt: '😀' } }, []).engineRequest.cache.salt).toBe('😀');
  });

  test('steers by messages and by ids', async () => {
    const { engine, worker } = await start();
    expect(await engine.cache.pin(messages)).toBe(16);
    expect(await engine.cache.unpin([1, 2], { salt: 's' })).toBe(32);
    expect(await engine.cache.evict([1])).toBe(1);
    expect(await engine.cache.clear()).toBe(5);
    expect(worker.engine.cacheCalls).toEqual([
      ['pin', '', { messages }],
      ['unpin', 's', { ids: [1, 2] }],
      ['evict', '', { ids: [1] }],
      ['clear'],
    ]);
    await expect(engine.cache.pin([])).rejects.toMatchObject({ code: 'bad_request' });
    await expect(engine.cache.evict([1, -1])).rejects.toThrow('prefix: token ids');
  });

  test('knows a prompt that tells of functions by them too', async () => {
    const { engine, worker } = await start();
    const parameters = { type: 'object' };
    const given = [
      { type: 'function', function: { name: 'look', strict: true, description: null, parameters } },
    ] as const;
    const tools = [{ type: 'function', function: { name: 'look', strict: true, parameters } }];
    await engine.cache.warm(messages, { tools: given });
    // Nothing is drawn, so nothing has to be compiled that would keep it to the schema.
    expect(worker.engine.grammars).toEqual([]);
    const sent = worker.received.at(-1);
    expect(sent).toMatchObject({ type: 'submit', request: { prefillOnly: true, tools: { list: tools } } });
    await engine.cache.pin(messages, { tools: given, salt: 's' });
    await engine.cache.unpin(messages, { tools: null });
    await engine.cache.evict(messages, { tools: given });
    await engine.cache.save(messages, { tools: given });
    expect(worker.engine.cacheCalls).toEqual([
      ['pin', 's', { messages, tools }],
      ['unpin', '', { messages }],
      ['evict', '', { messages, tools }],
      ['save', '', { messages, tools }],
    ]);
    const call = { id: 'x', type: 'function', function: { name: 'look', arguments: '{}' } } as const;
    const turn = [...messages, { role: 'assistant', tool_calls: [call] }] as const;
    await engine.cache.warm([...turn, { role: 'tool', tool_call_id: 'x', content: 'a cat' }], { tools: given });
    for (const refused of [[], 'look', [{ type: 'function', function: {} }]]) {
      const options = { tools: refused } as never;
      for (const way of ['warm', 'pin', 'unpin', 'evict', 'save'] as const) {
        await expect(engine.cache[way](messages, options)).rejects.toMatchObject({
          code: 'bad_request',
          message: expect.stringContaining('tools'),
        });
      }
    }
    await expect(engine.cache.pin([1], { tools: given })).rejects.toThrow('tools: only with messages');
    await expect(engine.cache.restore(new Blob(), { tools: given } as never)).rejects.toThrow('tools is not supported');
  });

  test('tells its events while somebody listens', async () => {
    const { engine, worker } = await start();
    await engine.cache.evict([1]);
    const events: CacheEvent[] = [];
    const unsubscribe = engine.cache.onEvent((event) => events.push(event));
    await engine.cache.warm(messages);
    await engine.cache.stats();
    expect(events).toEqual([{ kind: 'stored', position: 2, numTokens: 1 }]);
    await engine.cache.evict([1]);
    await engine.cache.stats();
    expect(events[1]).toMatchObject({ kind: 'evicted', reason: 'asked' });
    unsubscribe();
    unsubscribe();
    await engine.cache.evict([1]);
    await engine.cache.stats();
    expect(events.length).toBe(2);
    expect(worker.received.filter(({ type }) => type === 'cacheListen').length).toBe(2);
  });
});
