/** How many bytes per second this device's memory gives to a kernel that does nothing but read. */

/** Each invocation sums what it reads; the sum is written if it is a value that it never is, so that nothing is left out. */
const KERNEL = `
@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) num: vec3<u32>) {
  let stride = num.x * 256u;
  var sum = vec4<u32>(0u);
  for (var i = id.x; i < arrayLength(&source); i += stride) {
    sum += source[i];
  }
  if (sum.x + sum.y + sum.z + sum.w == 1u) {
    sums[0] = id.x;
  }
}`;

/** Two buffers, read in turn: what was read just now shall not lie in a cache. */
const BUFFER_BYTES = 128 << 20;
const SOFTWARE_BUFFER_BYTES = 16 << 20;
const WORKGROUPS = 2048;
/** A timing is at least this long, so that rounded clocks and the way to the GPU do not matter. */
const LEAST_MS = 60;
const MOST_READS = 512;
const NUM_TIMINGS = 5;
/** `GPUBufferUsage.STORAGE`, which type checkers do not know as a value. */
const STORAGE = 0x80;

/** Times reads of `bytes` each: milliseconds for so many of them together, 0 for an empty submission. */
export type TimeReads = (count: number) => Promise<number>;

/** From timings to bytes per second: as many reads as take long enough, the median of a few, less what an empty one takes. */
export async function bandwidthOf(bytes: number, time: TimeReads): Promise<number> {
  await time(1);
  const overheads = await several(() => time(0));
  let count = 1;
  while (count < MOST_READS && (await time(count)) < LEAST_MS) count *= 2;
  const ms = median(await several(() => time(count))) - median(overheads);
  return (1000 * bytes * count) / Math.max(ms, 0.001);
}

async function several(measure: () => Promise<number>): Promise<number[]> {
  const values: number[] = [];
  for (let index = 0; index < NUM_TIMINGS; index += 1) values.push(await measure());
  return values;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Measures this device, on a WebGPU device of its own that is gone afterwards. */
export async function measureBandwidth(isSoftware: boolean, signal: AbortSignal): Promise<number> {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (!adapter) throw Object.assign(new Error('no adapter'), { code: 'no_adapter' });
  const device = await adapter.requestDevice();
  try {
    const wanted = isSoftware ? SOFTWARE_BUFFER_BYTES : BUFFER_BYTES;
    const bytes = Math.min(wanted, device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize);
    const time = readsOn(device, bytes);
    return await bandwidthOf(bytes, (count) => {
      signal.throwIfAborted();
      return time(count);
    });
  } finally {
    device.destroy();
  }
}

function readsOn(device: GPUDevice, bytes: number): TimeReads {
  const module = device.createShaderModule({ code: KERNEL });
  const pipeline = device.createComputePipeline({ layout: 'auto', compute: { module, entryPoint: 'main' } });
  const sums = device.createBuffer({ size: 16, usage: STORAGE });
  const groups = [0, 1].map(() => {
    const source = device.createBuffer({ size: bytes, usage: STORAGE });
    const entries = [source, sums].map((buffer, binding) => ({ binding, resource: { buffer } }));
    return device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  });
  return async (count) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (let read = 0; read < count; read += 1) {
      pass.setBindGroup(0, groups[read % 2] ?? null);
      pass.dispatchWorkgroups(WORKGROUPS);
    }
    pass.end();
    const startMs = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    return performance.now() - startMs;
  };
}
