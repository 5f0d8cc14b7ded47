/** The latency floor and the memory calculator: numbers that can be checked by hand. */

import { describe, expect, it } from 'vitest';
import { bandwidthOf } from '../../src/labs/floor/bandwidth';
import { FloorLab } from '../../src/labs/floor/lab';
import { contextsFor } from '../../src/labs/floor/measure';
import { floorOf, kvBytesIn } from '../../src/labs/floor/model';
import { batchText } from '../../src/labs/floor/panels';
import { calculate, contextsUpTo, growth, type MemoryInput } from '../../src/labs/memory/calculate';
import { PRESETS, presetOf } from '../../src/labs/memory/presets';

describe('the floor', () => {
  const input = { weightsBytes: 800e6, kvBytesPerToken: 32_768, contextTokens: 0, batch: 1, bytesPerS: 48e9 };

  it('of 0.8 GB at 48 GB/s is 17 ms, 60 tokens a second', () => {
    const { tokenMs, tokensPerS } = floorOf(input);
    expect(tokenMs).toBeCloseTo(16.67, 1);
    expect(tokensPerS).toBeCloseTo(60, 6);
  });

  it('rises in a straight line with the context, and hardly with the batch', () => {
    const at = (contextTokens: number): number => floorOf({ ...input, contextTokens }).tokenMs;
    expect(at(2000) - at(1000)).toBeCloseTo(at(1000) - at(0), 9);
    const four = floorOf({ ...input, contextTokens: 100, batch: 4 });
    const one = floorOf({ ...input, contextTokens: 100 });
    expect(four.tokenMs / one.tokenMs).toBeLessThan(1.02);
    expect(four.tokensPerS / one.tokensPerS).toBeGreaterThan(3.9);
  });

  it('depends on the format of keys and values', () => {
    const loaded = { kv: 'f16', kvBytesPerToken: 32 } as const;
    expect([kvBytesIn('f32', loaded), kvBytesIn('f16', loaded), kvBytesIn('q8_0', loaded)]).toEqual([64, 32, 17]);
  });
});

describe('bandwidth', () => {
  it('is bytes by the time that reading takes, without the way to the GPU', async () => {
    // 5 ms for a submission, and 2 ms for each read of 1 GB.
    const rate = await bandwidthOf(1e9, (count) => Promise.resolve(5 + 2 * count));
    expect(rate).toBeCloseTo(500e9, -6);
  });

  it('is measured by as many reads as take long enough', async () => {
    const counts: number[] = [];
    await bandwidthOf(1e6, (count) => {
      counts.push(count);
      return Promise.resolve(count);
    });
    expect(Math.max(...counts)).toBe(64);
  });

  it('is not what a clock in ticks, or an answer that was late once, would make of it', async () => {
    // 0.1 ms for each read of 1 MB, seen at the next tick of 100 ms; the second timing behind the empty ones is 80 ms late.
    let num = 0;
    const rate = await bandwidthOf(1e6, (count) => {
      num += 1;
      return Promise.resolve(Math.ceil((1 + 0.1 * count) / 100) * 100 + (num === 8 ? 80 : 0));
    });
    expect(rate).toBeNull();
    const slower = await bandwidthOf(1e6, (count) => Promise.resolve(Math.ceil((1 + count) / 100) * 100));
    expect(slower).toBeGreaterThan(0.6e9);
    expect(slower).toBeLessThan(1.7e9);
  });

  it('of a device that is done too soon is still told, and not where there was nothing to see', async () => {
    // 3.3 TB/s, then reads that take no time at all.
    expect(await bandwidthOf(128e6, (count) => Promise.resolve(1 + count * (0.128 / 3.3)))).toBeCloseTo(3.3e12, -9);
    expect(await bandwidthOf(128e6, () => Promise.resolve(100))).toBeNull();
  });
});

it('contexts that are measured fit the model, whatever it is', () => {
  expect(contextsFor(8192, false)).toEqual([64, 256, 1024, 2048, 4096]);
  expect(contextsFor(8192, true)).toEqual([64, 256]);
  expect(contextsFor(64, false)).toEqual([31]);
});

it('a lab that is stopped forgets its stage', async () => {
  const lab = new FloorLab(() => Promise.reject(new Error('no device')));
  await lab.run({ info: { adapter: { isSoftware: true }, contextLength: 512, kv: 'f16' } } as never);
  expect(lab.job.problem.value?.detail).toBe('no device');
  expect(lab.stage.value).toBeNull();
});

describe('memory', () => {
  const input: MemoryInput = {
    preset: presetOf('llama3.3-70b'),
    contextLength: 131_072,
    users: 1,
    kv: 'f16',
    weights: 'q4_k_m',
    gpuBytes: 80e9,
    sharedTokens: 0,
  };

  it('of 70B with 128k tokens is 40 GiB', async () => {
    const { kvBytes, bytesPerToken } = await calculate(input);
    expect(kvBytes).toBe(40 * 2 ** 30);
    expect(bytesPerToken).toBe(327_680);
  });

  it('grows linearly with the context and with the users', async () => {
    const kv = async (change: Partial<MemoryInput>): Promise<number> =>
      (await calculate({ ...input, ...change })).kvBytes;
    expect(await kv({ contextLength: 2000 })).toBe(2 * (await kv({ contextLength: 1000 })));
    expect(await kv({ users: 7 })).toBe(7 * (await kv({})));
    expect((await kv({ kv: 'q8_0' })) / (await kv({}))).toBeCloseTo(34 / 64, 9);
  });

  it('keeps a shared prefix once', async () => {
    const shared = await calculate({ ...input, contextLength: 4000, users: 10, sharedTokens: 3000 });
    const token = 327_680;
    expect(shared.sharedBytes).toBe(3000 * token);
    expect(shared.kvBytes).toBe(3000 * token + 10 * 1000 * token);
    expect(shared.sparedBytes).toBe(9 * 3000 * token);
    const left = 80e9 - shared.weightsBytes - shared.sharedBytes;
    expect(shared.usersThatFit).toBe(Math.floor(left / (1000 * token)));
  });

  it('has nobody where not even the weights fit', async () => {
    expect((await calculate({ ...input, gpuBytes: 8e9 })).usersThatFit).toBe(0);
  });

  it('stops growing at the window of sliding layers', async () => {
    const lines = await growth(presetOf('gemma3-1b'), contextsUpTo(4096, 4));
    const [, a = 0, b = 0, c = 0] = lines.get('f16') ?? [];
    // Beyond 512 tokens only 4 of 26 layers grow.
    expect(c - b).toBe(b - a);
    expect(c - b).toBe(1024 * 2 * 4 * 256 * 2);
  });

  it('is plotted with the corner that a window makes', () => {
    expect(contextsUpTo(4096, 4, 512)).toEqual([0, 512, 1024, 2048, 3072, 4096]);
    expect(contextsUpTo(4096, 4, 1024)).toEqual(contextsUpTo(4096, 4));
    expect(contextsUpTo(4096, 4, 8192)).toEqual(contextsUpTo(4096, 4));
  });

  it('has presets from 135M to 70B, in heads that divide', () => {
    expect([PRESETS[0]?.name, PRESETS.at(-1)?.name]).toEqual(['SmolLM2 135M', 'Llama 3.3 70B']);
    for (const { heads, kvHeads } of PRESETS) expect(heads % kvHeads).toBe(0);
  });
});

describe('what is said of several answers at once', () => {
  const point = (batch: number, ms: number) => ({ kv: 'f16' as const, contextTokens: 64, batch, ms });

  it('follows from what was measured', () => {
    expect(batchText([point(1, 10), point(4, 16)])).toBe(
      'Measured here: 4 answers together come 2.5 times as fast as one.',
    );
    expect(batchText([point(1, 10), point(4, 50)])).toMatch(/^Measured here: .* 0\.8 times .*limit on this device/);
    expect(batchText([])).toBe('');
  });
});
