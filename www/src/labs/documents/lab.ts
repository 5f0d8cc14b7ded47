/** The documents lab's state: what is searched for, and the experiment on where passages stand. */
import { type Signal, signal } from '@preact/signals';
import type { Engine } from 'pagewise';
import type { DocumentLibrary, Found } from '../../documents/library';
import { type SourceRecord, toSource } from '../../documents/source';
import { Job } from '../shared/job';
import { type Asked, type ExperimentId, execute, type OrderRun, prepare, type Unfit, unfitFor } from './order';

/** Passages of a question in an experiment. */
const NUM_PASSAGES = 3;
/** Hits that the search shows. */
const NUM_HITS = 8;

export class SearchState {
  readonly query = signal('');
  /** What was found; null before a search. */
  readonly found: Signal<readonly Found[] | null> = signal(null);
  private round = 0;

  constructor(readonly library: DocumentLibrary) {}

  /** Looks for the passages; a later search ends an earlier one. */
  async search(query: string): Promise<void> {
    this.query.value = query;
    const round = ++this.round;
    const found = query.trim() === '' ? null : await this.library.search(query, NUM_HITS);
    if (round === this.round) this.found.value = found;
  }
}

/** An experiment: which one, and its two orders as far as they are. */
export interface Experiment {
  readonly id: ExperimentId;
  readonly runs: readonly OrderRun[];
  /** Questions that nothing was found for; they are not asked. */
  readonly unanswered: readonly string[];
  /** Why the questions that are asked cannot show the effect; null if they can. */
  readonly unfit: Unfit | null;
}

export class OrderLab {
  readonly experiment: Signal<Experiment | null> = signal(null);
  /** Whether no question found anything. */
  readonly isEmpty = signal(false);
  readonly tokens: Signal<number>;
  readonly job = new Job();

  constructor(
    readonly engine: Engine,
    private readonly library: DocumentLibrary,
  ) {
    // A GPU that is a processor takes seconds for what others do at once.
    this.tokens = signal(Math.min(engine.info.adapter.isSoftware ? 256 : 768, this.limit()));
  }

  /** The most tokens that a prompt may have here: two that share nothing are in the pool side by side. */
  limit(): number {
    return Math.max(96, Math.floor((this.engine.info.contextLength - 64) * 0.42));
  }

  /** Finds passages for the questions, says what to expect of both orders, then runs them. */
  start(id: ExperimentId, questions: readonly string[]): Promise<void> {
    return this.job.run(async (abort) => {
      await this.forget();
      const asked: Asked[] = [];
      for (const question of questions) asked.push({ question, sources: await this.sourcesFor(question) });
      const useful = asked.filter(({ sources }) => sources.length > 0);
      this.isEmpty.value = useful.length === 0;
      if (useful.length === 0 || abort.aborted) return;
      const prepared = await this.prepare(id, useful);
      if (abort.aborted) return;
      const unanswered = asked.filter(({ sources }) => sources.length === 0).map(({ question }) => question);
      const unfit = unfitFor(id, prepared[0]?.requests.map((request) => request.asked) ?? []);
      this.experiment.value = { id, runs: prepared, unanswered, unfit };
      const onChange = (runs: readonly OrderRun[]): void => {
        if (!abort.aborted) this.experiment.value = { id, runs, unanswered, unfit };
      };
      await execute(this.engine, prepared, onChange, abort);
    });
  }

  /** With as many passages, then as many questions, as a small context has room for. */
  private async prepare(id: ExperimentId, asked: readonly Asked[]): Promise<OrderRun[]> {
    const room = this.engine.info.contextLength - 2;
    let [numPassages, numAsked] = [NUM_PASSAGES, asked.length];
    for (;;) {
      const fewer = asked.slice(0, numAsked).map(({ question, sources }) => ({
        question,
        sources: sources.slice(0, numPassages),
      }));
      const runs = await prepare(this.engine, id, fewer, this.tokens.peek());
      const longest = Math.max(...runs.flatMap(({ requests }) => requests.map(({ ids }) => ids.length)));
      if (longest <= room || (numPassages === 1 && numAsked <= 2)) return runs;
      if (numPassages > 1) numPassages -= 1;
      else numAsked -= 1;
    }
  }

  private async sourcesFor(question: string): Promise<SourceRecord[]> {
    const found = await this.library.search(question, NUM_PASSAGES);
    return found.map(({ passage }, index) => toSource(passage, index + 1));
  }

  /** Drops what the last experiment left in the cache: nothing else is under its salts. */
  private async forget(): Promise<void> {
    for (const { salt, requests } of this.experiment.peek()?.runs ?? []) {
      const firsts = new Set(requests.map(({ ids }) => ids[0]));
      for (const id of firsts) if (id !== undefined) await this.engine.cache.evict([id], { salt });
    }
  }

  close(): void {
    this.job.stop();
    // A model that is gone has nothing to be put right.
    void this.forget().catch(() => undefined);
  }
}
