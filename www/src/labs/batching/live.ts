/** Sends a workload to the loaded model and notes every step. */
import type { Engine, SimulationResult, StepTrace } from 'pagewise';
import { type Figures, quantilesOf } from './figures';
import type { LaneRequest, LaneStep } from './lanes';

/** What a live run needs of an engine. */
export type ServingEngine = Pick<Engine, 'completions' | 'onStep' | 'tokenize'>;

/** How one mode served the workload. */
export interface Served {
  readonly requests: readonly LaneRequest[];
  readonly steps: readonly LaneStep[];
  readonly figures: Figures;
}

/** Texts whose tokens prompts are made of. */
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/**
 * Serves the requests that a simulation has drawn: their times of arrival, and their lengths to the token. Answers are drawn
 * from letters alone, so that none ends before it is as long as it should be; the prefix cache is left out of it.
 */
export async function serve(
  engine: ServingEngine,
  workload: SimulationResult['requests'],
  slots: number,
  signal: AbortSignal,
): Promise<Served> {
  const letters = await lettersOf(engine);
  const steps: StepTrace[] = [];
  const endTracing = engine.onStep((step) => steps.push(step));
  const names: string[] = [];
  const startMs = performance.now();
  try {
    await Promise.all(
      workload.map(async ({ atMs, numPrompt, numGenerated }, index) => {
        await sleep(startMs + atMs - performance.now(), signal);
        // Prompts differ from their first token on, as those of different users do.
        const prompt = Array.from(
          { length: numPrompt },
          (_, at) => letters[(at * 7 + index * 5) % letters.length] ?? 0,
        );
        const params = {
          prompt,
          max_tokens: numGenerated,
          temperature: 0,
          allowed_token_ids: letters,
          cache: { enabled: false },
          user: `lab-${index}`,
        };
        const { id } = await engine.completions.create(params, { signal });
        names[index] = id;
      }),
    );
  } finally {
    endTracing();
  }
  return served(workload, names, steps, slots, startMs);
}

/** Puts traces and requests together, on a clock that begins with the workload. */
export function served(
  workload: SimulationResult['requests'],
  names: readonly string[],
  steps: readonly StepTrace[],
  slots: number,
  startMs: number,
): Served {
  const indices = new Map(names.map((name, index) => [name, index]));
  const index = ({ request }: { request: string }): number[] => {
    const found = indices.get(request);
    return found === undefined ? [] : [found];
  };
  const laneSteps = steps.map((step) => ({
    startMs: step.startMs - startMs,
    endMs: step.endMs - startMs,
    parts: step.parts.flatMap((part) => index(part).map((request) => ({ ...part, request }))),
    preempted: step.preempted.flatMap(index),
  }));
  const tokenMs: number[][] = workload.map(() => []);
  let [busyMs, slotMs] = [0, 0];
  for (const { startMs: from, endMs, parts } of laneSteps) {
    busyMs += endMs - from;
    slotMs += (endMs - from) * parts.length;
    for (const { request, samples } of parts) if (samples) tokenMs[request]?.push(endMs);
  }
  const makespanMs = Math.max(0, ...tokenMs.flat());
  const at = (request: number): number => workload[request]?.atMs ?? 0;
  const gaps = tokenMs.flatMap((times) => times.slice(1).map((time, before) => time - (times[before] ?? time)));
  return {
    requests: workload.map(({ atMs }, request) => ({ atMs, endMs: tokenMs[request]?.at(-1) ?? atMs })),
    steps: laneSteps,
    figures: {
      ttftMs: quantilesOf(tokenMs.map((times, request) => (times[0] ?? 0) - at(request))),
      interTokenMs: quantilesOf(gaps),
      endToEndMs: quantilesOf(tokenMs.map((times, request) => (times.at(-1) ?? 0) - at(request))),
      tokensPerS: makespanMs > 0 ? (tokenMs.flat().length * 1000) / makespanMs : 0,
      occupancy: busyMs > 0 ? slotMs / (busyMs * slots) : 0,
      makespanMs,
    },
  };
}

/** Ids of single letters, those that are tokens of their own. */
async function lettersOf(engine: Pick<Engine, 'tokenize'>): Promise<number[]> {
  const lists = await Promise.all([...LETTERS].map((letter) => engine.tokenize(letter)));
  const ids = lists.map((list) => list.at(-1) ?? 0);
  return [...new Set(ids)];
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', end);
        resolve();
      },
      Math.max(0, ms),
    );
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}
