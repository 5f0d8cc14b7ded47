import { describe, expect, test } from 'vitest';
import { type GpuScope, probeAdapter, requestSubgroups } from '../src/gpu.js';

const adapter = (features: string[], info: object): never =>
  ({
    features: new Set(features),
    limits: { maxStorageBufferBindingSize: 7, maxBufferSize: 9 },
    info: { vendor: '', architecture: '', device: '', description: '', ...info },
  }) as never;
const scope = (found: unknown, rest: object = {}): GpuScope => ({
  navigator: { gpu: { requestAdapter: async () => found as never } },
  ...rest,
});

describe('probeAdapter', () => {
  test('describes the adapter', async () => {
    const info = { vendor: 'v', architecture: 'a', device: 'd', subgroupMinSize: 4, subgroupMaxSize: 8 };
    expect(await probeAdapter(scope(adapter(['subgroups', 'shader-f16'], info)))).toEqual({
      vendor: 'v',
      architecture: 'a',
      description: 'd',
      isSoftware: false,
      features: ['shader-f16', 'subgroups'],
      subgroups: true,
      subgroupMinSize: 4,
      subgroupMaxSize: 8,
      maxBufferBytes: 7,
    });
  });

  test.each([
    [{ architecture: 'swiftshader' }, true],
    [{ description: 'llvmpipe (LLVM 15)' }, true],
    [{ isFallbackAdapter: true }, true],
    [{ vendor: 'nvidia' }, false],
  ])('%j is software: %s', async (info, isSoftware) => {
    expect((await probeAdapter(scope(adapter([], info)))).isSoftware).toBe(isSoftware);
  });

  test('says what is missing', async () => {
    const failure = (message: RegExp): object => ({ code: 'no_webgpu', message });
    await expect(probeAdapter({ navigator: {} })).rejects.toMatchObject(failure(/no WebGPU/));
    await expect(probeAdapter({ navigator: {}, isSecureContext: false })).rejects.toMatchObject(failure(/https/));
    await expect(probeAdapter(scope(null))).rejects.toMatchObject(failure(/adapter/));
  });
});

describe('requestSubgroups', () => {
  const request = async (has: string[], descriptor?: object): Promise<string[]> => {
    let asked: string[] = [];
    class GPUAdapter {
      features = new Set(has);
      async requestDevice({ requiredFeatures }: { requiredFeatures: string[] }): Promise<void> {
        asked = requiredFeatures;
      }
    }
    requestSubgroups({ navigator: {}, GPUAdapter } as never);
    await new GPUAdapter().requestDevice(descriptor as never);
    return asked;
  };

  test('adds the feature where the adapter has it, and nowhere else', async () => {
    expect(await request(['subgroups'], { requiredFeatures: ['timestamp-query'] })).toEqual([
      'timestamp-query',
      'subgroups',
    ]);
    expect(await request(['subgroups'])).toEqual(['subgroups']);
    expect(await request([], { requiredFeatures: ['timestamp-query'] })).toEqual(['timestamp-query']);
  });

  test('does nothing without WebGPU', () => {
    expect(() => requestSubgroups({ navigator: {} })).not.toThrow();
  });
});
