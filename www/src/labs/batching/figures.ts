/** P50, P95 and P99 of how a workload was served. */
import type { SimulationReport } from 'pagewise';

/** A quantile of each kind. */
export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** The figures that modes are compared by; times in milliseconds. */
export interface Figures {
  readonly ttftMs: Quantiles;
  readonly interTokenMs: Quantiles;
  readonly endToEndMs: Quantiles;
  readonly tokensPerS: number;
  readonly occupancy: number;
  readonly makespanMs: number;
}

/** Those of a simulation. */
export function figuresOf({ ttftMs, interTokenMs, endToEndMs, ...rest }: SimulationReport): Figures {
  const { generatedTokensPerS: tokensPerS, occupancy, makespanMs } = rest;
  return { ttftMs, interTokenMs, endToEndMs, tokensPerS, occupancy, makespanMs };
}

/** The nearest rank: a quantile is always one of the values. */
export function quantilesOf(values: readonly number[]): Quantiles {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (percent: number): number => sorted[Math.max(1, Math.ceil((sorted.length * percent) / 100)) - 1] ?? 0;
  return { p50: rank(50), p95: rank(95), p99: rank(99) };
}
