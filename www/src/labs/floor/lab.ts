/** The latency-floor lab's state: what was measured on this device. */
import { type Signal, signal } from '@preact/signals';
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
    this.stage.value = 'bandwidth';
    this.bytesPerS.value ??= await this.measure(adapter.isSoftware, abort);
    this.points.value = this.points.peek().filter((point) => point.kv !== kv);
    const contexts = contextsFor(contextLength, adapter.isSoftware);
    // The first answer after a load is slower than all others.
    await tokenMs(engine, 16, 1, abort);
    this.stage.value = 'contexts';
    for (const contextTokens of contexts) await this.point(engine, contextTokens, 1, abort);
    this.stage.value = 'batches';
    for (const batch of BATCHES.slice(1)) await this.point(engine, contexts[0] ?? 16, batch, abort);
    this.stage.value = 'streaming';
    const messages = [{ role: 'user', content: 'Tell me about the sea.' }] as const;
    if (engine.info.hasChatTemplate) this.seen.value = await streaming(engine, messages, abort);
  }

  private async point(engine: Engine, contextTokens: number, batch: number, abort: AbortSignal): Promise<void> {
    const ms = await tokenMs(engine, contextTokens, batch, abort);
    const { kv } = engine.info;
    if (ms !== null) this.points.value = [...this.points.peek(), { kv, contextTokens, batch, ms }];
  }
}
