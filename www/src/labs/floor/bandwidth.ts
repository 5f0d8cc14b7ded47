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
/** Reads take at least this long, so that rounded clocks and the way to the GPU do not matter. */
const LEAST_MS = 60;
const MOST_READS = 512;
/** Where even the most reads take less: what is less than this was no time of theirs. */
const LEAST_TOLD_MS = 5;
const NUM_TIMINGS = 5;
/** `GPUBufferUsage.STORAGE`, which type checkers do not know as a value. */
const STORAGE = 0x80;

/** Times reads of `bytes` each: milliseconds for so many of them together, 0 for an empty submission. */
export type TimeReads = (count: number) => Promise<number>;

/**
 * From timings to bytes per second: as many reads as take long enough, the median of a few, less what an empty one takes. Null
 * when the reads cannot be told from that: browsers look for the end of work in ticks, and a busy machine is late with all of it.
 */
export async function bandwidthOf(bytes: number, time: TimeReads): Promise<number | null> {
  await time(1);
  const emptyMs = median(await several(() => time(0)));
  for (let count = 1; ; count *= 2) {
    const isMost = count >= MOST_READS;
    // One that is late by chance would end the search too soon, so several decide.
    if (!isMost && (await time(count)) - emptyMs < LEAST_MS) continue;
    const ms = median(await several(() => time(count))) - emptyMs;
    if (ms >= (isMost ? LEAST_TOLD_MS : LEAST_MS)) return (1000 * bytes * count) / ms;
    if (isMost) return null;
  }
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

/** Measures this device, on a WebGPU device of its own that is gone afterwards; null as in {@link bandwidthOf}. */
export async function measureBandwidth(isSoftware: boolean, signal: AbortSignal): Promise<number | null> {
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
