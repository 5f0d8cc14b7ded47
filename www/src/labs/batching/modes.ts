/** The ways of batching that are compared. */
import type { SimulationParams } from 'pagewise';

export const MODES = ['static', 'continuous', 'chunked'] as const;
export type ModeName = (typeof MODES)[number];

/** How the engine, or the simulator, is set for each. */
export const MODE_OPTIONS: Readonly<Record<ModeName, Pick<SimulationParams, 'batching' | 'chunkedPrefill'>>> = {
  static: { batching: 'static', chunkedPrefill: false },
  continuous: { batching: 'continuous', chunkedPrefill: false },
  chunked: { batching: 'continuous', chunkedPrefill: true },
};
