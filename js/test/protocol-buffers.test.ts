/** What crosses the border to the worker without a copy. */

import { describe, expect, test } from 'vitest';
import { Engine } from '../src/engine.js';
import { buffersOf } from '../src/guard.js';
import { FakeWorker, fakeModel } from './fake.js';
import { watchRejections } from './protocol-setup.js';

watchRejections();

describe('big buffers are handed over', () => {
  test('logits from the worker', async () => {
    const worker = new FakeWorker();
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const rows = [Float32Array.of(1, 2), Float32Array.of(3)];
    worker.engine.logits = async () => rows;
    expect(await engine.logits([1, 2], { positions: [0, 1] })).toEqual([Float32Array.of(1, 2), Float32Array.of(3)]);
    expect(rows.map(({ byteLength }) => byteLength)).toEqual([0, 0]);
    expect(worker.transferred).toHaveLength(2);
  });

  test('a saved prefix to the worker, if the caller gives it away', async () => {
    const worker = new FakeWorker();
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const given = Uint8Array.of(1, 2, 3);
    expect(await engine.cache.restore(given, { transfer: true })).toEqual({ tokens: 32, blocks: 2 });
    expect(given.byteLength).toBe(0);
    const kept = Uint8Array.of(1, 2, 3);
    await engine.cache.restore(kept);
    expect(kept.byteLength).toBe(3);
    const part = new Uint8Array(new ArrayBuffer(8), 2, 3).fill(1);
    await engine.cache.restore(part, { transfer: true });
    // Only whole buffers are given away: the rest of this one is somebody else's.
    expect(part.byteLength).toBe(3);
    const calls = worker.engine.cacheCalls.filter(([name]) => name === 'restore').map(([, bytes]) => bytes);
    expect(calls).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 1, 1],
    ]);
  });

  test('a detached buffer is refused, and the engine goes on', async () => {
    const worker = new FakeWorker();
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const data = Uint8Array.of(1, 2);
    structuredClone(data, { transfer: [data.buffer] });
    await expect(engine.cache.restore(data, { transfer: true })).rejects.toMatchObject({ code: 'bad_request' });
    expect(await engine.tokenize('a')).toEqual([97]);
  });

  test('a saved prefix from the worker is a Blob, which is never copied; ranges of WebAssembly memory are not given away', async () => {
    const engine = await Engine.load(fakeModel(), { createWorker: () => new FakeWorker().asWorker });
    expect(await engine.cache.save([5])).toBeInstanceOf(Blob);
    const memory = new WebAssembly.Memory({ initial: 1 });
    expect(buffersOf([new Float32Array(memory.buffer, 16, 4)])).toEqual([]);
    const [a, b] = [new Float32Array(4), new Uint8Array(3)];
    expect(buffersOf({ embeddings: a, again: a, bytes: b.buffer, name: 'x' })).toEqual([a.buffer, b.buffer]);
  });
});
