/** The batching lab's logic: rows, quantiles, the workload, and traces of live steps. */
import { describe, expect, it } from 'vitest';
import { quantilesOf } from '../../src/labs/batching/figures';
import { lanesOf } from '../../src/labs/batching/lanes';
import { served } from '../../src/labs/batching/live';
import { liveScale, simulationOf } from '../../src/labs/batching/workload';

describe('rows of a timeline', () => {
  // Request 1 waits for a step, is prefilled in two, decodes, gives way, and goes on.
  const part = (request: number, start: number): { request: number; start: number; numPrompt: number } => ({
    request,
    start,
    numPrompt: 8,
  });
  const steps = [
    { startMs: 0, endMs: 10, parts: [part(0, 0)], preempted: [] },
    { startMs: 10, endMs: 20, parts: [part(0, 8), part(1, 0)], preempted: [] },
    { startMs: 20, endMs: 30, parts: [part(0, 9), part(1, 4)], preempted: [] },
    { startMs: 30, endMs: 40, parts: [part(0, 10)], preempted: [1] },
    { startMs: 40, endMs: 50, parts: [part(1, 0)], preempted: [] },
    { startMs: 50, endMs: 60, parts: [part(1, 8)], preempted: [] },
  ];
  const requests = [
    { atMs: 0, endMs: 40 },
    { atMs: 4, endMs: 60 },
  ];

  it('say when each waited, was prefilled, decoded and gave way', () => {
    expect(lanesOf(requests, steps, 9)).toEqual({
      waiting: [{ row: 1, startMs: 4, endMs: 10 }],
      prefill: [
        { row: 0, startMs: 0, endMs: 10 },
        { row: 1, startMs: 10, endMs: 30 },
        { row: 1, startMs: 40, endMs: 50 },
      ],
      decode: [
        { row: 0, startMs: 10, endMs: 40 },
        { row: 1, startMs: 50, endMs: 60 },
      ],
      preempted: [{ row: 1, startMs: 30, endMs: 40 }],
    });
  });

  it('are as many as are wanted', () => {
    expect(lanesOf(requests, steps, 1).waiting).toEqual([]);
  });
});

it('quantiles are values that were measured', () => {
  const values = Array.from({ length: 200 }, (_, index) => 200 - index);
  expect(quantilesOf(values)).toEqual({ p50: 100, p95: 190, p99: 198 });
  expect(quantilesOf([7])).toEqual({ p50: 7, p95: 7, p99: 7 });
  expect(quantilesOf([])).toEqual({ p50: 0, p95: 0, p99: 0 });
});

describe('the workload', () => {
  const input = { place: 'server', numRequests: 20, perS: 3, longShare: 0.25, slots: 8, chunkTokens: 256 } as const;

  it('is the same for every mode; chunks are those of chunked prefill alone', () => {
    const [a, b, c] = (['static', 'continuous', 'chunked'] as const).map((mode) => simulationOf(input, mode));
    expect(a?.workload).toEqual(b?.workload);
    expect(b?.workload).toEqual(c?.workload);
    expect([a, b, c].map((one) => [one?.batching, one?.chunkedPrefill])).toEqual([
      ['static', false],
      ['continuous', false],
      ['continuous', true],
    ]);
    expect([a?.budgetTokens, c?.budgetTokens]).toEqual([16_384, 256]);
    expect(a?.workload?.classes.map(({ share }) => share)).toEqual([0.75, 0.25]);
  });

  it('has no class without a share, and arrives at once without a rate', () => {
    const { workload } = simulationOf({ ...input, longShare: 0, perS: 0 }, 'static');
    expect(workload?.classes.map(({ name }) => name)).toEqual(['short']);
    expect(workload?.arrivals).toEqual({ kind: 'at_once' });
  });

  it('fits a live model’s context', () => {
    for (const context of [128, 512, 4096]) {
      const { longPrompt, answer } = liveScale(context, true);
      expect(longPrompt + 3 * answer).toBeLessThan(context);
    }
  });
});

it('live steps are put on the workload’s clock, and counted', () => {
  const request = {
    class: 0,
    atMs: 5,
    startMs: 0,
    firstTokenMs: 0,
    endMs: 0,
    numPrompt: 8,
    numCached: 0,
    numGenerated: 3,
  };
  const step = (startMs: number, start: number, samples = true): Parameters<typeof served>[2][number] => ({
    startMs,
    endMs: startMs + 10,
    gpuMs: null,
    encodeMs: null,
    numWaiting: 0,
    parts: [
      { request: 'cmpl-a', choice: 0, start, end: start + 1, numPrompt: 8, samples },
      { request: 'another', choice: 0, start: 0, end: 1, numPrompt: 8, samples: true },
    ],
    preempted: [],
  });
  const steps = [step(1010, 0, false), step(1020, 7), step(1030, 8), step(1050, 9)];
  const { requests, figures, steps: lanes } = served([request], ['cmpl-a'], steps, 2, 1000);
  expect(requests).toEqual([{ atMs: 5, endMs: 60 }]);
  expect(lanes.map(({ startMs, parts }) => [startMs, parts.length])).toEqual([
    [10, 1],
    [20, 1],
    [30, 1],
    [50, 1],
  ]);
  // First token at 30, 25 after its arrival; then 10 and 20 later.
  expect(figures.ttftMs.p50).toBe(25);
  expect(figures.interTokenMs).toEqual({ p50: 10, p95: 20, p99: 20 });
  expect(figures.endToEndMs.p99).toBe(55);
  expect(figures.occupancy).toBe(0.5);
  expect(figures.tokensPerS).toBe(50);
});
