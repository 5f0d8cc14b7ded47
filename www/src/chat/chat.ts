/** The chat: what a visitor can do in it. */
import { batch, computed, type Signal, signal } from '@preact/signals';
import { createBatcher } from '../frame';
import type { LoadedModel } from '../state/engine';
import { isCancelled, toProblem } from '../state/problem';
import type { Session } from '../state/session';
import { NEW_ANSWER, newTurn, type Turn, toMessages, updateAnswer } from './turns';

export class Chat {
  readonly turns: Signal<readonly Turn[]> = signal([]);
  readonly draft = signal('');
  readonly contextTokens = signal(0);
  readonly focus = signal(0);
  private readonly running: Signal<Turn | null> = signal(null);
  readonly busy = computed(() => this.running.value !== null);
  private abort: AbortController | null = null;

  constructor(readonly session: Session) {
    session.beforeLoad.add(() => this.abort?.abort());
  }

  /** Asks `question`, loading the model first if there is none. */
  send(question: string): void {
    const text = question.trim();
    if (text === '' || this.busy.peek()) return;
    const turn = newTurn(text);
    batch(() => {
      this.turns.value = [...this.turns.peek(), turn];
      this.draft.value = '';
      this.focus.value += 1;
    });
    void this.answer(turn);
  }

  /** Answers the last question again. */
  regenerate(): void {
    const turn = this.turns.peek().at(-1);
    if (!turn || this.busy.peek()) return;
    turn.answer.value = NEW_ANSWER;
    void this.answer(turn);
  }

  /** Stops the answer under way, and the load it waits for. */
  stop(): void {
    const turn = this.running.peek();
    if (!turn) return;
    this.abort?.abort();
    this.session.loader.cancel();
    this.focus.value += 1;
  }

  newChat(): void {
    this.stop();
    batch(() => {
      this.turns.value = [];
      this.contextTokens.value = 0;
      this.session.announcement.value = 'New chat';
      this.focus.value += 1;
    });
  }

  private async answer(turn: Turn): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    this.running.value = turn;
    try {
      const model = await this.modelFor(turn);
      if (abort.signal.aborted) updateAnswer(turn, { status: 'stopped' });
      else if (model) await this.stream(turn, model, abort.signal);
    } finally {
      if (this.running.peek() === turn) this.running.value = null;
    }
  }

  /** The loaded model, loading it if need be; null after noting on the turn why there is none. */
  private async modelFor(turn: Turn): Promise<LoadedModel | null> {
    const state = this.session.loader.state.peek();
    if (state.kind === 'ready') return state.model;
    const model = await this.session.loadWanted();
    if (model) return model;
    const after = this.session.loader.state.peek();
    if (after.kind === 'failed') updateAnswer(turn, { status: 'failed', problem: after.problem });
    else if (this.session.dialog.peek() === 'models') this.takeBack(turn);
    else updateAnswer(turn, { status: 'stopped' });
    return null;
  }

  /** Puts a question that no model could get back into the composer. */
  private takeBack(turn: Turn): void {
    this.turns.value = this.turns.peek().filter((other) => other !== turn);
    this.draft.value = turn.question;
  }

  private async stream(turn: Turn, model: LoadedModel, signal: AbortSignal): Promise<void> {
    let text = '';
    const batcher = createBatcher(() => updateAnswer(turn, { status: 'streaming', text }));
    try {
      const messages = toMessages(this.turns.peek(), this.session.settings.peek().systemPrompt);
      for await (const part of model.answer(messages, this.session.settings.peek(), signal)) {
        if (part.kind === 'text') {
          text += part.text;
          batcher.schedule();
        } else {
          batcher.flush();
          updateAnswer(turn, { stats: part.stats });
          this.contextTokens.value = part.stats.promptTokens + part.stats.answerTokens;
        }
      }
      batcher.flush();
      updateAnswer(turn, { status: signal.aborted ? 'stopped' : 'done' });
    } catch (error) {
      batcher.flush();
      if (signal.aborted || isCancelled(error)) {
        updateAnswer(turn, { status: 'stopped' });
        return;
      }
      const problem = toProblem(error);
      updateAnswer(turn, { status: 'failed', problem });
      if (problem.code === 'device_lost') this.session.loader.fail(problem);
    }
  }
}
