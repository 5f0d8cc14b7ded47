import { describe, expect, test, vi } from 'vitest';
import { Engine, type LoadProgress, PagewiseError } from '../src/index.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;
const forever = (): Promise<never> => new Promise(() => undefined);

function fake(options: FakeOptions = {}): { worker: FakeWorker; createWorker: () => Worker } {
  const worker = new FakeWorker(options);
  const fake = { createWorker: () => worker.asWorker };
  // Not enumerable: options that `load` does not have are refused.
  return Object.defineProperty(fake, 'worker', { value: worker }) as typeof fake & { worker: FakeWorker };
}

describe('load', () => {
  test('tells progress and what was loaded', async () => {
    const { createWorker } = fake();
    const seen: LoadProgress[] = [];
    const engine = await Engine.load(fakeModel(), { createWorker, onProgress: (progress) => seen.push(progress) });
    expect(seen.map((progress) => progress.phase)).toEqual(['header', 'compile', 'weights', 'ready']);
    expect(seen.at(-1)).toEqual({ phase: 'ready', loadedBytes: 64, totalBytes: 64 });
    expect(engine.info).toMatchObject({
      id: 'fake-model',
      name: 'Fake Model',
      architecture: 'llama',
      contextLength: 100,
      adapter: { vendor: 'fake', isSoftware: true, features: ['subgroups'] },
    });
    expect(engine.info.adapter).not.toHaveProperty('subgroupMinSize');
  });

  test('passes options and what is known of the GPU to the module', async () => {
    const loadEngine = vi.fn(() => Promise.reject({ code: 'out_of_memory', message: 'too large' }));
    const { createWorker, worker } = fake({ module: { loadEngine } });
    const load = Engine.load(fakeModel(), { createWorker, contextLength: 2048, kv: 'f32' });
    await expect(load).rejects.toMatchObject({ code: 'out_of_memory' });
    const options = { contextLength: 2048, kv: 'f32', adapter: { subgroups: true, subgroupMinSize: 4 } };
    expect(loadEngine.mock.calls[0]).toMatchObject([expect.anything(), options, expect.any(Function)]);
    expect([worker.engine.numReleases, worker.isTerminated]).toEqual([1, true]);
  });

  test.each([
    [{ kv: 'q8' }, 'kv'],
    [{ contextLength: 0 }, 'contextLength'],
    [{ contextLength: 1.5 }, 'contextLength'],
    [{ maxGpuBytes: -1 }, 'maxGpuBytes'],
    [{ precision: 'half' }, 'precision'],
    [{ precision: 'fast', autotune: false }, 'autotune'],
    [{ autotune: 1 }, 'autotune'],
  ])('refuses %j', async (options, name) => {
    const load = Engine.load(fakeModel(), options as never);
    await expect(load).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining(name) });
  });

  test('without WebGPU says no_webgpu and reads nothing', async () => {
    const loadEngine = vi.fn(forever);
    const probeAdapter = (): Promise<never> => Promise.reject(new PagewiseError('no_webgpu', 'none'));
    const { createWorker } = fake({ probeAdapter, module: { loadEngine } });
    await expect(Engine.load(fakeModel(), { createWorker })).rejects.toMatchObject({ code: 'no_webgpu' });
    expect(loadEngine).not.toHaveBeenCalled();
  });

  test('is aborted at any time, and the worker ended', async () => {
    const { createWorker, worker } = fake({ module: { loadEngine: forever } });
    const controller = new AbortController();
    const load = Engine.load(fakeModel(), { createWorker, signal: controller.signal });
    setTimeout(() => controller.abort(), 5);
    await expect(load).rejects.toMatchObject({ code: 'cancelled' });
    expect(worker.isTerminated).toBe(true);
  });

  test('is aborted before it begins', async () => {
    const createWorker = vi.fn();
    const load = Engine.load(fakeModel(), { createWorker, signal: AbortSignal.abort() });
    await expect(load).rejects.toMatchObject({ code: 'cancelled' });
    expect(createWorker).not.toHaveBeenCalled();
  });

  test('an abort after it is done leaves the engine alone', async () => {
    const { createWorker } = fake();
    const controller = new AbortController();
    const engine = await Engine.load(fakeModel(), { createWorker, signal: controller.signal });
    controller.abort();
    expect((await engine.chat.completions.create({ messages })).choices[0]?.message.content).toBe('Hello');
  });

  test('a worker that cannot be made or started is worker_crashed', async () => {
    const createWorker = (): Worker => {
      throw new Error('blocked');
    };
    await expect(Engine.load(fakeModel(), { createWorker })).rejects.toMatchObject({ code: 'worker_crashed' });
    const { createWorker: second, worker } = fake({ module: { loadEngine: forever } });
    setTimeout(() => worker.onerror?.({ message: '' }), 5);
    const load = Engine.load(fakeModel(), { createWorker: second });
    await expect(load).rejects.toMatchObject({
      code: 'worker_crashed',
      message: expect.stringContaining('worker-src'),
    });
  });

  test("an unreadable file is the reader's error, not the module's", async () => {
    const file = fakeModel();
    const read = { code: 'network', message: 'generic' };
    const loadEngine = async (reader: {
      read: (p: number, o: number, l: number) => Promise<unknown>;
    }): Promise<never> => {
      await reader.read(0, 0, 10).catch(() => undefined);
      throw read;
    };
    vi.spyOn(Blob.prototype, 'arrayBuffer').mockRejectedValueOnce(new Error('NotReadableError'));
    const { createWorker } = fake({ module: { loadEngine: loadEngine as never } });
    await expect(Engine.load(file, { createWorker })).rejects.toMatchObject({
      code: 'network',
      offset: 0,
      message: expect.stringContaining('can no longer be read'),
    });
  });
});

/** Expects a rejection with `bad_request`: not a plain error, and not one that is thrown at once. */
async function expectRefused(call: () => Promise<unknown>, message: string): Promise<void> {
  const failure = await call().then(
    () => 'was not refused',
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(PagewiseError);
  expect(failure).toMatchObject({ code: 'bad_request', message: expect.stringContaining(message) });
}

describe('options', () => {
  const OPTIONS = [null, 3, 'x', [], new Map(), new AbortController().signal];

  test.each(OPTIONS)('that are %o instead of an object are refused by every call', async (options) => {
    const engine = await Engine.load(fakeModel(), fake());
    const bad = options as never;
    for (const call of [
      () => Engine.load(fakeModel(), bad),
      () => Engine.inspect(fakeModel(), bad),
      () => Engine.plan(fakeModel(), bad),
      () => engine.chat.completions.create({ messages }, bad),
      () => engine.completions.create({ prompt: 'a' }, bad),
      () => engine.tokenize('a', bad),
      () => engine.detokenize([1], bad),
      () => engine.logits([1], bad),
      () => engine.applyTemplate(messages, bad),
    ]) {
      await expectRefused(call, 'options: a plain object is needed');
    }
  });

  test('that are unknown are refused by name, and those of a wrong kind', async () => {
    const engine = await Engine.load(fakeModel(), fake());
    const load = (options: object) => () => Engine.load(fakeModel(), { ...fake(), ...options } as never);
    const refused: [() => Promise<unknown>, string][] = [
      [load({ contextlength: 512 }), 'load: contextlength is not supported; supported are signal, registry'],
      [load({ toString: 1 }), 'load: toString is not supported'],
      [load({ signal: {} }), 'load: signal: an AbortSignal is needed, an object given'],
      [load({ onProgress: 'x' }), 'load: onProgress: a function is needed'],
      [load({ createWorker: {} }), 'load: createWorker: a function is needed'],
      [() => Engine.inspect(fakeModel(), { contextLength: 5 } as never), 'inspect: contextLength is not supported'],
      [() => engine.chat.completions.create({ messages }, { signal: {} as never }), 'create: signal: an AbortSignal'],
      [() => engine.chat.completions.create({ messages }, { timeout: 5 } as never), 'create: timeout is not supported'],
      [() => engine.completions.create({ prompt: 'a' }, { signal: new EventTarget() as never }), 'create: signal'],
      [() => engine.tokenize('a', { addSpecial: 'no' as never }), 'tokenize: addSpecial: true or false is needed'],
      [() => engine.logits([1], { positions: {} as never }), 'logits: positions: a list is needed'],
      [() => engine.logits([1], { position: [0] } as never), 'logits: position is not supported'],
    ];
    for (const [call, message] of refused) await expectRefused(call, message);
    await expect(load({ contextlength: undefined })()).resolves.toBeInstanceOf(Engine);
  });

  test.each([undefined, null, {}, 'worker.js', Promise.resolve()])('a createWorker that returns %o', async (junk) => {
    const options = { createWorker: () => junk as never };
    await expectRefused(() => Engine.load(fakeModel(), options), 'createWorker: it has to return a Worker');
  });

  test('logits of one position twice are refused, and ids with holes', async () => {
    const engine = await Engine.load(fakeModel(), fake());
    await expectRefused(() => engine.logits([7, 8], { positions: [0, 1, 0] }), 'position 0 is given twice');
    await expectRefused(() => engine.logits(new Array(2)), 'a list of at least one token id');
  });
});

describe('inspect and plan', () => {
  test('answer and end their worker', async () => {
    const first = fake();
    const description = await Engine.inspect(fakeModel(77), { createWorker: first.createWorker });
    expect(description).toMatchObject({ fileBytes: 77, isSupported: true });
    expect(first.worker.isTerminated).toBe(true);
    const second = fake();
    const plan = await Engine.plan(fakeModel(), { createWorker: second.createWorker, contextLength: 50, kv: 'f32' });
    expect(plan).toMatchObject({ contextLength: 50, kvBytes: 100, kv: 'f32' });
    expect(second.worker.isTerminated).toBe(true);
  });

  test('plan for the GPU that is there', async () => {
    const plan = vi.fn(() => Promise.reject({ code: 'out_of_memory', message: 'too large' }));
    const planned = Engine.plan(fakeModel(), { ...fake({ module: { plan } }), maxGpuBytes: 5 });
    await expect(planned).rejects.toMatchObject({ code: 'out_of_memory' });
    expect(plan.mock.calls[0]).toMatchObject([
      expect.anything(),
      { kv: 'f16', maxGpuBytes: 5, adapter: { maxBufferBytes: 1000 } },
    ]);
  });

  test('need no GPU', async () => {
    const probeAdapter = (): Promise<never> => Promise.reject(new PagewiseError('no_webgpu', 'none'));
    await expect(Engine.inspect(fakeModel(), fake({ probeAdapter }))).resolves.toBeDefined();
    await expect(Engine.plan(fakeModel(), fake({ probeAdapter }))).resolves.toBeDefined();
  });
});

describe('text tools', () => {
  test('tokenize, detokenize and applyTemplate', async () => {
    const engine = await Engine.load(fakeModel(), fake());
    expect(await engine.tokenize('ab')).toEqual([97, 98]);
    expect(await engine.tokenize('ab', { addSpecial: true })).toEqual([1, 97, 98]);
    expect(await engine.detokenize([97, 98])).toBe('ab');
    expect(JSON.parse(await engine.applyTemplate(messages))).toEqual({ messages, addGenerationPrompt: true });
    const tools = [{ type: 'function', function: { name: 'look' } }] as const;
    expect(JSON.parse(await engine.applyTemplate(messages, { tools, addGenerationPrompt: false }))).toEqual({
      ...{ messages, tools, addGenerationPrompt: false },
    });
    await expect(engine.applyTemplate(messages, { tools: [] })).rejects.toThrow('tools: a list of at least one');
    await expect(engine.detokenize([-1])).rejects.toMatchObject({ code: 'bad_request' });
    await expect(engine.tokenize(3 as never)).rejects.toMatchObject({ code: 'bad_request' });
    await expect(engine.applyTemplate([])).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('logits of the last position, or of those asked for in ascending order', async () => {
    const engine = await Engine.load(fakeModel(), fake());
    expect(await engine.logits([7, 8, 9])).toEqual([Float32Array.of(2, 9)]);
    expect(await engine.logits([7, 8, 9], { positions: [1, 0] })).toEqual([
      Float32Array.of(0, 7),
      Float32Array.of(1, 8),
    ]);
    for (const bad of [
      () => engine.logits([]),
      () => engine.logits([1], { positions: [1] }),
      () => engine.logits([-1]),
    ]) {
      await expect(bad()).rejects.toMatchObject({ code: 'bad_request' });
    }
  });

  test('metrics count steps', async () => {
    const engine = await Engine.load(fakeModel(), fake());
    expect(await engine.metrics()).toMatchObject({ numSteps: 0, numRunning: 0, wasmMemoryBytes: 65536 });
    await engine.chat.completions.create({ messages });
    expect((await engine.metrics()).numSteps).toBeGreaterThan(4);
  });

  test('wait for the end of a step', async () => {
    const engine = await Engine.load(fakeModel(), fake({ prefillSteps: 10 }));
    const answer = engine.chat.completions.create({ messages });
    // The fake throws on any call during a step, which would crash the loop.
    for (let i = 0; i < 10; i++) await engine.tokenize('a');
    expect((await answer).choices[0]?.message.content).toBe('Hello');
  });
});

describe('unload', () => {
  test('frees the engine, settles everything with cancelled and ends the worker', async () => {
    const { worker, createWorker } = fake({ prefillSteps: 100_000 });
    const engine = await Engine.load(fakeModel(), { createWorker });
    const stream = await engine.chat.completions.create({ messages, stream: true });
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const pending = [iterator.next(), engine.chat.completions.create({ messages }), engine.tokenize('a')];
    const settled = Promise.allSettled(pending);
    await engine.unload();
    for (const result of await settled) {
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { code: 'cancelled', message: 'the engine was unloaded' },
      });
    }
    expect([worker.engine.isFree, worker.engine.numReleases, worker.isTerminated]).toEqual([true, 1, true]);
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'cancelled' });
    await expect(engine.chat.completions.create({ messages })).rejects.toMatchObject({ code: 'cancelled' });
    await engine.unload();
  });

  test('called again waits until the memory is free', async () => {
    const { worker, createWorker } = fake();
    const engine = await Engine.load(fakeModel(), { createWorker });
    const first = engine.unload();
    await engine.unload();
    expect([worker.engine.isFree, worker.isTerminated]).toEqual([true, true]);
    await first;
  });

  test('refuses calls while it runs, and does not wait for ever', async () => {
    const { worker, createWorker } = fake({ engine: { step: forever } });
    const engine = await Engine.load(fakeModel(), { createWorker });
    const answer = engine.chat.completions.create({ messages });
    const failed = expect(answer).rejects.toMatchObject({ code: 'cancelled' });
    await vi.waitFor(() => expect(worker.engine.hasWork()).toBe(true));
    vi.useFakeTimers();
    const unloaded = engine.unload();
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'cancelled' });
    await vi.advanceTimersByTimeAsync(4000);
    await unloaded;
    vi.useRealTimers();
    await failed;
    expect(worker.isTerminated).toBe(true);
  });
});

describe('a crash', () => {
  test('of the module settles everything with worker_crashed', async () => {
    const step = (): Promise<never> => Promise.reject(new WebAssembly.RuntimeError('unreachable'));
    const { worker, createWorker } = fake({ engine: { step } });
    const engine = await Engine.load(fakeModel(), { createWorker });
    await expect(engine.chat.completions.create({ messages })).rejects.toMatchObject({
      code: 'worker_crashed',
      message: 'the engine crashed: unreachable',
    });
    expect(worker.isTerminated).toBe(true);
    await expect(engine.tokenize('a')).rejects.toMatchObject({ code: 'worker_crashed' });
    await engine.unload();
  });

  test('of the worker settles everything', async () => {
    const { worker, createWorker } = fake({ prefillSteps: 100_000 });
    const engine = await Engine.load(fakeModel(), { createWorker });
    const answer = engine.chat.completions.create({ messages });
    setTimeout(() => worker.onerror?.({ message: 'out of memory' }), 5);
    await expect(answer).rejects.toMatchObject({
      code: 'worker_crashed',
      message: expect.stringContaining('out of memory'),
    });
  });
});
