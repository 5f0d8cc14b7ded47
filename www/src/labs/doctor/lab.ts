/** The prompt doctor's state: what was pasted, and what was found. */
import { type Signal, signal } from '@preact/signals';
import { type Engine, explainMiss, type MissExplanation } from 'pagewise';
import { Job } from '../shared/job';
import { commonLength, type PromptEngine, piecesOf, renderPrompt } from '../shared/prompt';
import type { TokenRun } from '../shared/token-runs';
import { examineLog, type LogReport } from './log';
import { type BadLine, messagesOf, parseLog, parsePrompt } from './parse';
import { SAMPLE_LOG, SAMPLES, type Sample } from './samples';

/** A prompt as the loaded model sees it. */
export interface ModelView {
  readonly previous: ModelPrompt;
  readonly next: ModelPrompt;
  /** Tokens in common. */
  readonly shared: number;
}

export interface ModelPrompt {
  readonly text: string;
  readonly ids: readonly number[];
  readonly runs: readonly TokenRun[];
}

export class DoctorLab {
  readonly previous = signal(SAMPLES[0]?.previous ?? '');
  readonly next = signal(SAMPLES[0]?.next ?? '');
  readonly log = signal(SAMPLE_LOG);
  readonly found: Signal<MissExplanation | null> = signal(null);
  /** Null where no model is loaded, or what was pasted are no messages. */
  readonly model: Signal<ModelView | null> = signal(null);
  readonly report: Signal<LogReport | null> = signal(null);
  readonly bad: Signal<readonly BadLine[]> = signal([]);
  readonly job = new Job();

  /** Puts a sample in the place of what was pasted. */
  take({ previous, next }: Sample, engine: Engine | null): Promise<void> {
    this.previous.value = previous;
    this.next.value = next;
    return this.compare(engine);
  }

  /** Compares the two prompts; with an engine, also as it renders and encodes them. */
  compare(engine: PromptEngine | null): Promise<void> {
    const [previous, next] = [parsePrompt(this.previous.peek()), parsePrompt(this.next.peek())];
    return this.job.run(async (abort) => {
      const found = await explainMiss(previous, next);
      const [a, b] = [messagesOf(previous), messagesOf(next)];
      const model = engine && a && b ? await modelView(engine, a, b) : null;
      if (abort.aborted) return;
      this.found.value = found;
      this.model.value = model;
    });
  }

  /** Examines the log. */
  examine(): Promise<void> {
    const { entries, bad } = parseLog(this.log.peek());
    return this.job.run(async (abort) => {
      const report = await examineLog(entries, abort);
      this.report.value = report;
      this.bad.value = bad;
    });
  }
}

type Messages = NonNullable<ReturnType<typeof messagesOf>>;

async function modelView(engine: PromptEngine, previous: Messages, next: Messages): Promise<ModelView> {
  const [a, b] = await Promise.all([renderPrompt(engine, previous), renderPrompt(engine, next)]);
  const shared = commonLength(a.ids, b.ids);
  const view = async ({ text, ids }: { text: string; ids: readonly number[] }): Promise<ModelPrompt> => {
    const pieces = await piecesOf(engine, ids);
    const runs: TokenRun[] = [
      { kind: 'reused', start: 0, texts: pieces.slice(0, shared) },
      { kind: 'computed', start: shared, texts: pieces.slice(shared) },
    ];
    return { text, ids, runs: runs.filter(({ texts }) => texts.length > 0) };
  };
  return { previous: await view(a), next: await view(b), shared };
}
