/** Something that a lab runs: one at a time, stoppable, and what went wrong is kept to be shown. */
import { computed, type Signal, signal } from '@preact/signals';
import { isCancelled, type Problem, toProblem } from '../../state/problem';

export class Job {
  readonly problem: Signal<Problem | null> = signal(null);
  private readonly abort: Signal<AbortController | null> = signal(null);
  readonly busy = computed(() => this.abort.value !== null);

  /** Runs `work` in place of what runs; resolves when it has ended, however it did. */
  async run(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.stop();
    const abort = new AbortController();
    this.abort.value = abort;
    this.problem.value = null;
    try {
      await work(abort.signal);
    } catch (error) {
      if (!isCancelled(error) && !abort.signal.aborted) this.problem.value = toProblem(error);
    } finally {
      if (this.abort.peek() === abort) this.abort.value = null;
    }
  }

  stop(): void {
    this.abort.peek()?.abort();
    this.abort.value = null;
  }
}
