/** The latency-floor lab's state: what was measured on this device. */
import { batch, type Signal, signal } from '@preact/signals';
import type { Engine } from 'pagewise';
import { Job } from '../shared/job';
import { measureBandwidth } from './bandwidth';
import { BATCHES, contextsFor, type Seen, streaming, tokenMs } from './measure';

/** A measured time between tokens. */
export interface Point {
  readonly kv: 'f16' | 'f32';
  readonly contextTokens: number;
  readonly batch: number;
  readonly ms: number;
}

/** What is being measured. */
export type Stage = 'bandwidth' | 'contexts' | 'batches' | 'streaming';

export class FloorLab {
  /** Bytes per second, once they are known; kept over loads, since it is the device's. */
  readonly bytesPerS: Signal<number | null> = signal(null);
  readonly points: Signal<readonly Point[]> = signal([]);
  readonly seen: Signal<{ streamed: Seen; whole: Seen } | null> = signal(null);
  readonly stage: Signal<Stage | null> = signal(null);
  /** Which step of the measurement it is, from 1, and how many there are. */
  readonly step: Signal<{ readonly at: number; readonly of: number }> = signal({ at: 0, of: 0 });
  readonly job = new Job();

  constructor(private readonly measure: typeof measureBandwidth = measureBandwidth) {}

  /** Measures all of it. */
  run(engine: Engine): Promise<void> {
    return this.job.run(async (abort) => {
      try {
        await this.runAll(engine, abort);
      } finally {
        this.stage.value = null;
      }
    });
  }

  private async runAll(engine: Engine, abort: AbortSignal): Promise<void> {
    const { adapter, contextLength, kv } = engine.info;
    const contexts = contextsFor(contextLength, adapter.isSoftware);
    const { hasChatTemplate } = engine.info;
    this.step.value = { at: 0, of: 1 + contexts.length + BATCHES.length - 1 + (hasChatTemplate ? 1 : 0) };
    this.next('bandwidth');
    this.bytesPerS.value ??= await this.measure(adapter.isSoftware, abort);
    this.points.value = this.points.peek().filter((point) => point.kv !== kv);
    // The first answer after a load is slower than all others.
    await tokenMs(engine, 16, 1, abort);
    for (const contextTokens of contexts) {
      this.next('contexts');
      await this.point(engine, contextTokens, 1, abort);
    }
    for (const answers of BATCHES.slice(1)) {
      this.next('batches');
      await this.point(engine, contexts[0] ?? 16, answers, abort);
    }
    if (!hasChatTemplate) return;
    this.next('streaming');
    const messages = [{ role: 'user', content: 'Tell me about the sea.' }] as const;
    this.seen.value = await streaming(engine, messages, abort);
  }

  private next(stage: Stage): void {
    const { at, of } = this.step.peek();
    batch(() => {
      this.step.value = { at: at + 1, of };
      this.stage.value = stage;
    });
  }

  private async point(engine: Engine, contextTokens: number, answers: number, abort: AbortSignal): Promise<void> {
    const ms = await tokenMs(engine, contextTokens, answers, abort);
    const { kv } = engine.info;
    if (ms !== null) this.points.value = [...this.points.peek(), { kv, contextTokens, batch: answers, ms }];
  }
}
