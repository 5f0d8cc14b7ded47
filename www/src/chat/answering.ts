/** Writes answers: waits for a model, streams into a message, saves now and then. One answer at a time in a conversation. */
import { type Signal, signal } from '@preact/signals';
import { createBatcher } from '../frame';
import type { LoadedModel, ReadingProgress } from '../state/engine';
import { isCancelled, toProblem } from '../state/problem';
import type { Session } from '../state/session';
import type { Budgets } from './budgets';
import { holdAnswer } from './live-locks';
import { change, type Message, type Thread, toRecord } from './thread';
import { toMessages } from './tree';

/** How often an answer that is being written is saved: what a closed page loses. */
const SAVE_EVERY_MS = 1000;

interface Running {
  readonly thread: Thread;
  readonly message: Message;
  readonly abort: AbortController;
}

export type AnswerResult = 'ended' | 'no_model';

export class Answering {
  /** Answers under way by conversation. */
  readonly running: Signal<ReadonlyMap<string, Running>> = signal(new Map());
  /** How far the prompts of answers without a word are, by message. */
  readonly reading: Signal<ReadonlyMap<string, ReadingProgress>> = signal(new Map());

  constructor(
    private readonly session: Session,
    private readonly budgets: Budgets,
    private readonly save: (thread: Thread, messages: readonly Message[]) => Promise<void>,
  ) {}

  /** Ends the answer of a conversation, and the load it waits for. */
  stop(conversation: string): void {
    const running = this.running.peek().get(conversation);
    if (!running) return;
    running.abort.abort();
    if (running.message.state.peek().status === 'waiting') this.session.loader.cancel();
  }

  stopAll(): void {
    for (const { abort } of this.running.peek().values()) abort.abort();
  }

  /** Saves what there is of every answer: the page may be about to go. */
  saveAll(): void {
    for (const { thread, message } of this.running.peek().values()) void this.save(thread, [message]);
  }

  /** Answers the question above `message`. Never rejects. */
  async run(thread: Thread, message: Message): Promise<AnswerResult> {
    const abort = new AbortController();
    this.set(thread.id, { thread, message, abort });
    const release = holdAnswer(message.id);
    try {
      const model = await this.modelFor(message);
      if (model === 'none') return 'no_model';
      if (abort.signal.aborted) change(message, { status: 'stopped' });
      else if (model) await this.stream(thread, message, model, abort.signal);
      return 'ended';
    } finally {
      if (this.running.peek().get(thread.id)?.message === message) this.set(thread.id, null);
      // Other tabs take an answer whose lock is free and whose end is not saved for one that was cut off.
      const saved = thread.nodes.peek().has(message.id) ? this.save(thread, [message]) : Promise.resolve();
      void saved.finally(release);
    }
  }

  private set(conversation: string, running: Running | null): void {
    const next = new Map(this.running.peek());
    if (running) next.set(conversation, running);
    else next.delete(conversation);
    this.running.value = next;
  }

  /** The loaded model, loading it if need be; null after noting on the message why there is none, `none` to choose one. */
  private async modelFor(message: Message): Promise<LoadedModel | null | 'none'> {
    const state = this.session.loader.state.peek();
    if (state.kind === 'ready') return state.model;
    const model = await this.session.loadWanted();
    if (model) return model;
    const after = this.session.loader.state.peek();
    if (after.kind === 'failed') change(message, { status: 'failed', problem: after.problem });
    else if (this.session.dialog.peek() === 'models') return 'none';
    else change(message, { status: 'stopped' });
    return null;
  }

  /** Looks for passages that go with the question, where the conversation uses documents. */
  private async findSources(thread: Thread, message: Message, model: LoadedModel, signal: AbortSignal): Promise<void> {
    if (!thread.record.peek().documents?.isOn) return;
    const { findSources } = await import('../documents/chat');
    const question = await findSources(this.session, thread, message, model, signal);
    if (question) this.save(thread, [question]);
  }

  private async stream(thread: Thread, message: Message, model: LoadedModel, signal: AbortSignal): Promise<void> {
    let text = '';
    // The first words are saved at once: another tab shows them.
    let savedAt = Number.NEGATIVE_INFINITY;
    const batcher = createBatcher(() => {
      change(message, { status: 'streaming', text });
      if (performance.now() - savedAt < SAVE_EVERY_MS) return;
      savedAt = performance.now();
      void this.save(thread, [message]);
    });
    try {
      await this.findSources(thread, message, model, signal);
      const path = thread.path.peek().map(toRecord);
      const end = path.findIndex(({ id }) => id === message.id);
      const all = toMessages(end < 0 ? path : path.slice(0, end), thread.record.peek().system);
      const settings = this.session.settings.peek();
      const messages = await this.budgets.fit(thread, all, model, settings, signal);
      for await (const part of model.answer(messages, settings, signal)) {
        if (part.kind === 'reading') this.note(message, part);
        else if (part.kind === 'text') {
          text += part.text;
          batcher.schedule();
        } else {
          batcher.flush();
          change(message, { stats: part.stats });
        }
      }
      batcher.flush();
      change(message, { status: signal.aborted ? 'stopped' : 'done' });
    } catch (error) {
      batcher.flush();
      if (signal.aborted || isCancelled(error)) return change(message, { status: 'stopped' });
      const problem = toProblem(error);
      change(message, { status: 'failed', problem });
      if (problem.code === 'device_lost') this.session.loader.fail(problem);
    } finally {
      this.note(message, null);
    }
  }

  private note({ id }: Message, progress: ReadingProgress | null): void {
    const next = new Map(this.reading.peek());
    if (progress) next.set(id, { done: progress.done, total: progress.total });
    else next.delete(id);
    this.reading.value = next;
  }
}
