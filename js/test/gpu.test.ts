import { describe, expect, type Mock, test, vi } from 'vitest';
import { Devices, type GpuScope, probeAdapter } from '../src/gpu.js';

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
    const refuses = { gpu: { requestAdapter: () => Promise.reject(new Error('the GPU process is gone')) } };
    await expect(probeAdapter({ navigator: refuses })).rejects.toMatchObject(failure(/the GPU process is gone/));
  });
});

/** Opens a device of an adapter with these features; tells what was asked, and counts its submissions. */
async function open(
  has: string[],
  descriptor?: object,
  userAgent = '',
): Promise<{ devices: Devices; asked: string[]; numSubmits: () => number; destroy: Mock }> {
  let asked: string[] = [];
  const [submit, destroy] = [vi.fn(), vi.fn()];
  class GPUAdapter {
    features = new Set(has);
    async requestDevice({ requiredFeatures }: { requiredFeatures: string[] }): Promise<object> {
      asked = requiredFeatures;
      return { queue: { submit }, destroy };
    }
  }
  const devices = new Devices({ navigator: { userAgent }, GPUAdapter } as never);
  await new GPUAdapter().requestDevice(descriptor as never);
  return { devices, asked, numSubmits: () => submit.mock.calls.length, destroy };
}

describe('devices', () => {
  test('get subgroups where the adapter has them, and nowhere else', async () => {
    const timestamps = { requiredFeatures: ['timestamp-query'] };
    expect((await open(['subgroups'], timestamps)).asked).toEqual(['timestamp-query', 'subgroups']);
    expect((await open(['subgroups'])).asked).toEqual(['subgroups']);
    expect((await open([], timestamps)).asked).toEqual(['timestamp-query']);
  });

  test('are ended when the model is unloaded, each once', async () => {
    const { devices, destroy } = await open([]);
    devices.release();
    devices.release();
    expect(destroy).toHaveBeenCalledTimes(1);
  });

  test('need no WebGPU', () => {
    expect(() => new Devices({ navigator: {} })).not.toThrow();
  });

  test.each([
    ['Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0', true],
    ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36', false],
  ])('are pulsed while work is waited for: %s %s', async (userAgent, isPulsed) => {
    const { devices, numSubmits } = await open([], undefined, userAgent);
    const work = new Promise((resolve) => setTimeout(() => resolve('done'), 50));
    expect(await devices.whileWaiting(work)).toBe('done');
    const num = numSubmits();
    expect(num > 0).toBe(isPulsed);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(numSubmits()).toBe(num);
    await expect(devices.whileWaiting(Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  });
});
