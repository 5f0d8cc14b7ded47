/** The batching lab's state: what is asked, and how each mode served it. */
import { type Signal, signal } from '@preact/signals';
import { type SimulationResult, simulate } from 'pagewise';
import type { Session } from '../../state/session';
import { Job } from '../shared/job';
import { type Figures, figuresOf } from './figures';
import type { LaneRequest, LaneStep } from './lanes';
import { serve } from './live';
import { MODE_OPTIONS, MODES, type ModeName } from './modes';
import { type BatchingInput, liveScale, type Place, simulationOf } from './workload';

/** How a mode served the workload. */
export interface ModeResult {
  readonly requests: readonly LaneRequest[];
  readonly steps: readonly LaneStep[];
  readonly figures: Figures;
}

export type Results = Partial<Readonly<Record<ModeName, ModeResult>>>;

/** Where each place's sliders begin. */
export const START: Readonly<Record<Place, BatchingInput>> = {
  server: { place: 'server', numRequests: 200, perS: 12, longShare: 0.15, slots: 16, chunkTokens: 512 },
  integrated: { place: 'integrated', numRequests: 40, perS: 1, longShare: 0.2, slots: 4, chunkTokens: 128 },
  live: { place: 'live', numRequests: 10, perS: 0, longShare: 0.3, slots: 3, chunkTokens: 64 },
};

export class BatchingLab {
  readonly input: Signal<BatchingInput> = signal(START.server);
  readonly results: Signal<Results> = signal({});
  /** What the results are of. */
  readonly shownInput: Signal<BatchingInput> = signal(START.server);
  readonly job = new Job();

  constructor(private readonly session: Session) {}

  /** Changes what is asked; a simulation follows at once, a live run when it is asked for. */
  set(change: Partial<BatchingInput>): void {
    const before = this.input.peek();
    const base = change.place && change.place !== before.place ? START[change.place] : before;
    this.input.value = { ...base, ...change };
    if (this.input.peek().place === 'live') this.job.stop();
    else void this.simulate();
  }

  /** Simulates all modes. */
  simulate(): Promise<void> {
    const input = this.input.peek();
    return this.job.run(async (abort) => {
      const results: Partial<Record<ModeName, ModeResult>> = {};
      for (const mode of MODES) {
        results[mode] = resultOf(await simulate(simulationOf(input, mode)));
        // The page draws in between.
        await new Promise((resolve) => setTimeout(resolve));
        if (abort.aborted) return;
      }
      this.show(input, results);
    });
  }

  /** Sends the workload to the model, loaded anew for each mode. */
  runLive(): Promise<void> {
    const input = this.input.peek();
    return this.job.run(async (abort) => {
      this.show(input, {});
      for (const mode of MODES) {
        const { maxRunning, maxStepTokens } = { maxRunning: input.slots, maxStepTokens: input.chunkTokens };
        const scheduling = { ...MODE_OPTIONS[mode], maxRunning };
        const isChunked = MODE_OPTIONS[mode].chunkedPrefill === true;
        const model = await this.session.loadFor({
          scheduling: isChunked ? { ...scheduling, maxStepTokens } : scheduling,
        });
        if (!model || abort.aborted) return;
        const { contextLength, adapter } = model.info;
        // The simulator draws the requests; only the serving is real.
        const scale = liveScale(contextLength, adapter.isSoftware);
        const { requests } = await simulate(simulationOf(input, mode, scale));
        const result = await serve(model.engine, requests, input.slots, abort);
        this.show(input, { ...this.results.peek(), [mode]: result });
      }
    });
  }

  private show(input: BatchingInput, results: Results): void {
    this.shownInput.value = input;
    this.results.value = results;
  }
}

function resultOf({ report, requests, steps }: SimulationResult): ModeResult {
  return { requests, steps, figures: figuresOf(report) };
}
