/** Stand-ins for the package's tools that need no engine: the same formulas where they are short, plausible results elsewhere. */
import type { ExplainablePrompt, MissCause, MissExplanation, MissSide } from '../../js/src/doctor';
import type { KvMemory, KvMemoryParams } from '../../js/src/memory';
import type { SimulatedStep, SimulationParams, SimulationReport, SimulationResult } from '../../js/src/simulation';

export type * from '../../js/src/cache-types';
export type * from '../../js/src/doctor';
export type * from '../../js/src/memory';
export type * from '../../js/src/simulation';

/** In a browser the package's own tools work too: they need no engine. */
const isReal = import.meta.env.MODE === 'fake';

/** Bytes of 32 values. */
const BYTES = { f32: 128, f16: 64, bf16: 64, q8_0: 34, q4_0: 18 } as const;

export async function kvMemory(params: KvMemoryParams): Promise<KvMemory> {
  if (isReal) return (await import('../../js/src/memory')).kvMemory(params);
  const { numLayers, numSlidingLayers = 0, window = 0, kvHeads, headDim, contextLength, kv = 'f16' } = params;
  const row = 2 * kvHeads * (headDim / 32) * BYTES[kv];
  const fullBytes = row * (numLayers - numSlidingLayers) * contextLength;
  const slidingBytes = row * numSlidingLayers * Math.min(contextLength, window);
  return Promise.resolve({
    bytesPerToken: row * numLayers,
    bytesPerTokenBeyondWindow: row * (numLayers - numSlidingLayers),
    fullBytes,
    slidingBytes,
    totalBytes: fullBytes + slidingBytes,
  });
}

const textOf = (prompt: ExplainablePrompt): string => (typeof prompt === 'string' ? prompt : JSON.stringify(prompt));

export async function explainMiss(previous: ExplainablePrompt, next: ExplainablePrompt): Promise<MissExplanation> {
  if (isReal) return (await import('../../js/src/doctor')).explainMiss(previous, next);
  const [a, b] = [textOf(previous), textOf(next)];
  let shared = 0;
  while (shared < a.length && a[shared] === b[shared]) shared += 1;
  const miss = shared < a.length && shared < b.length;
  const around = (text: string): MissSide => ({
    before: text.slice(Math.max(0, shared - 24), shared),
    text: text.slice(shared, shared + 5),
    after: text.slice(shared + 5, shared + 40),
  });
  const isTime = /\d\d:\d\d/.test(b.slice(Math.max(0, shared - 5), shared + 8));
  const cause: MissCause = a === b ? 'identical' : !miss ? 'appended' : isTime ? 'timestamp' : 'edited';
  return Promise.resolve({
    miss,
    cause,
    also: [],
    place: miss ? { part: 'message', message: 0, role: 'system', character: shared } : null,
    previous: miss ? around(a) : null,
    next: miss ? around(b) : null,
    size: { unit: 'characters', previous: a.length, next: b.length, shared, lost: a.length - shared },
    fraction: { lost: 1 - shared / a.length, reused: shared / b.length },
    summary: miss ? `A ${cause} differs.` : 'The next prompt continues the previous one.',
    advice: miss ? 'Move it to the end.' : null,
  });
}

/** One request a slot, prompts in one step each: a schedule that is simple and adds up. */
export async function simulate(params: SimulationParams = {}): Promise<SimulationResult> {
  if (isReal) return (await import('../../js/src/simulation')).simulate(params);
  const { workload, maxRunning = 8, batching, numTraced = 0 } = params;
  const num = Math.min(workload?.numRequests ?? 12, 40);
  const isStatic = batching === 'static';
  const length = (index: number): number => 4 + ((index * 7) % 11);
  const requests = Array.from({ length: num }, (_, index) => ({
    index,
    left: length(index),
    hasPrompt: false,
    token: [] as number[],
  }));
  const steps: SimulatedStep[] = [];
  let [nowMs, waiting] = [0, [...requests]];
  let running: typeof requests = [];
  while (running.length + waiting.length > 0) {
    if (!isStatic || running.length === 0) {
      const joining = waiting.slice(0, maxRunning - running.length);
      running = [...running, ...joining];
      waiting = waiting.slice(joining.length);
    }
    const endMs = nowMs + 10 + running.length;
    const parts = running.map((one) => {
      const at = 20 + one.token.length;
      return { request: one.index, start: one.hasPrompt ? at - 1 : 0, end: at, numPrompt: 20, samples: true };
    });
    const traced = parts.filter(({ request }) => request < numTraced);
    const counts = {
      numTokens: parts.reduce((sum, { start, end }) => sum + end - start, 0),
      numSequences: parts.length,
    };
    steps.push({ startMs: nowMs, endMs, ...counts, numWaiting: waiting.length, parts: traced, preempted: [] });
    for (const one of running) {
      one.hasPrompt = true;
      one.token.push(endMs);
      one.left -= 1;
    }
    running = running.filter(({ left }) => left > 0);
    nowMs = endMs;
  }
  const served = requests.map(({ index, token }) => ({
    class: index % Math.max(1, workload?.classes.length ?? 1),
    atMs: 0,
    startMs: Math.max(0, (token[0] ?? 0) - 11),
    firstTokenMs: token[0] ?? 0,
    endMs: token.at(-1) ?? 0,
    numPrompt: 20,
    numCached: 0,
    numGenerated: token.length,
  }));
  const report = reportOf(served, nowMs, steps.length);
  return Promise.resolve({ report, classes: [report], requests: served, steps });
}

function reportOf(requests: SimulationResult['requests'], makespanMs: number, numSteps: number): SimulationReport {
  const quantiles = (values: number[]): SimulationReport['ttftMs'] => {
    const sorted = values.sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    const mean = sorted.reduce((sum, value) => sum + value, 0) / Math.max(1, sorted.length);
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1), mean };
  };
  const generatedTokens = requests.reduce((sum, { numGenerated }) => sum + numGenerated, 0);
  return {
    numRequests: requests.length,
    makespanMs,
    promptTokens: 20 * requests.length,
    cachedTokens: 0,
    generatedTokens,
    generatedTokensPerS: (generatedTokens * 1000) / makespanMs,
    totalTokensPerS: ((generatedTokens + 20 * requests.length) * 1000) / makespanMs,
    numSteps,
    occupancy: 0.6,
    numPreemptions: 0,
    queueMs: quantiles(requests.map(({ startMs }) => startMs)),
    ttftMs: quantiles(requests.map(({ firstTokenMs }) => firstTokenMs)),
    interTokenMs: quantiles(
      requests.map(({ endMs, firstTokenMs, numGenerated }) => (endMs - firstTokenMs) / Math.max(1, numGenerated - 1)),
    ),
    endToEndMs: quantiles(requests.map(({ endMs }) => endMs)),
  };
}
