/**
 * What the browser says about its GPU before the module opens it, and what is added to the devices that it opens.
 */

import { PagewiseError } from './errors.js';
import type { AdapterProbe } from './protocol.js';

/** Where WebGPU lives: the worker's global scope. */
export interface GpuScope {
  /** False on plain http, where browsers hide WebGPU. */
  isSecureContext?: boolean;
  /** Has `gpu` where there is WebGPU. */
  navigator: { gpu?: Pick<GPU, 'requestAdapter'>; userAgent?: string };
  /** The class of adapters. */
  GPUAdapter?: { prototype: Pick<GPUAdapter, 'requestDevice' | 'features'> };
}

/** Milliseconds between two pulses of {@link Devices.whileWaiting}. */
const PULSE_MS = 4;

/** The devices that the module opens: what it cannot ask for, or make the browser do, is added here. */
export class Devices {
  #queue: Pick<GPUQueue, 'submit'> | undefined;
  readonly #open: Pick<GPUDevice, 'destroy'>[] = [];
  readonly #needsPulse: boolean;

  /**
   * Wraps `GPUAdapter.requestDevice`. wgpu's web backend knows no `subgroups` feature and so can never request it: from
   * here on, every device of an adapter that has it gets it.
   */
  constructor(scope: GpuScope) {
    this.#needsPulse = /\bFirefox\//.test(scope.navigator.userAgent ?? '');
    const prototype = scope.GPUAdapter?.prototype;
    if (prototype === undefined) return;
    const original = prototype.requestDevice;
    const opened = (device: GPUDevice): GPUDevice => {
      this.#queue = device.queue;
      this.#open.push(device);
      return device;
    };
    prototype.requestDevice = async function (this: GPUAdapter, descriptor: GPUDeviceDescriptor = {}) {
      const features = new Set(descriptor.requiredFeatures);
      if (this.features.has('subgroups')) features.add('subgroups');
      return opened(await original.call(this, { ...descriptor, requiredFeatures: [...features] }));
    };
  }

  /**
   * Ends all devices, and frees their memory now: what the module drops is free only once the browser has collected its
   * garbage.
   */
  release(): void {
    this.#queue = undefined;
    for (const device of this.#open.splice(0)) device.destroy();
  }

  /**
   * Waits for work on the GPU. Firefox looks only every 100 ms whether the GPU is done, and at every submission: so
   * there, empty submissions go out meanwhile (measured: 100 ms a token without, 5 ms with, on a tiny model).
   */
  async whileWaiting<T>(work: Promise<T>): Promise<T> {
    if (!this.#needsPulse) return work;
    const timer = setInterval(() => this.#queue?.submit([]), PULSE_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }
}

/** Describes the adapter that the module will get, or throws `no_webgpu` saying what is missing. */
export async function probeAdapter(scope: GpuScope): Promise<AdapterProbe> {
  const { gpu } = scope.navigator;
  if (gpu === undefined) {
    const why =
      scope.isSecureContext === false
        ? 'this page is not served over https or from localhost, where browsers offer WebGPU'
        : 'this browser has no WebGPU, or it is switched off';
    throw new PagewiseError('no_webgpu', why);
  }
  let adapter: GPUAdapter | null;
  try {
    adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
  } catch (cause) {
    throw new PagewiseError('no_webgpu', `the browser gives no GPU adapter: ${cause}`, { cause });
  }
  if (adapter === null) {
    throw new PagewiseError('no_webgpu', 'the browser has WebGPU but no GPU adapter that it allows pages to use');
  }
  const { vendor, architecture, description, device } = adapter.info;
  const words = `${vendor} ${architecture} ${device} ${description}`.toLowerCase();
  const sizes = adapter.info as { subgroupMinSize?: number; subgroupMaxSize?: number; isFallbackAdapter?: boolean };
  return {
    vendor,
    architecture,
    description: description || device,
    isSoftware: sizes.isFallbackAdapter === true || /swiftshader|llvmpipe|lavapipe|basic render/.test(words),
    features: [...adapter.features].sort(),
    subgroups: adapter.features.has('subgroups'),
    subgroupMinSize: sizes.subgroupMinSize ?? 0,
    subgroupMaxSize: sizes.subgroupMaxSize ?? 0,
    maxBufferBytes: Math.min(adapter.limits.maxStorageBufferBindingSize, adapter.limits.maxBufferSize),
  };
}
