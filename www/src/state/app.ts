/** The state of the page and everything a visitor can do to it. Components show it and call its methods. */
import { batch, computed, type Signal, signal } from '@preact/signals';
import { createBatcher } from '../frame';
import { type Browser, checkGpu, detectBrowser, type GpuCheck } from './browser';
import { NEW_ANSWER, newTurn, type Turn, toMessages, updateAnswer } from './conversation';
import type { LoadedModel } from './engine';
import { ModelLoader } from './loader';
import { chooseKnown, fetchKnownModels, type KnownModel, type ModelChoice, parseChoice } from './models';
import { isCancelled, toProblem } from './problem';
import { loadSettings, readAddress, type Settings, saveSettings } from './settings';

export type DialogName = 'settings' | 'models';

const SOFTWARE_NOTICE =
  'WebGPU computes on the processor here, not on a graphics card, so answers are slow. Turn on graphics acceleration in the browser’s settings.';
const NO_TEMPLATE_NOTICE =
  'This model has no chat template: it continues texts and cannot hold a conversation. Choose an “instruct” or “chat” model.';

export class App {
  readonly browser: Browser;
  readonly gpu: Signal<GpuCheck> = signal({ kind: 'checking' });
  readonly settings: Signal<Settings>;
  readonly loader = new ModelLoader();
  readonly turns: Signal<readonly Turn[]> = signal([]);
  readonly draft = signal('');
  readonly dialog: Signal<DialogName | null> = signal(null);
  /** Short messages above the composer, dismissed one by one. */
  readonly notices: Signal<readonly string[]> = signal([]);
  /** What a screen reader should say next. */
  readonly announcement = signal('');
  /** Tokens of the conversation in the model's context after the last answer. */
  readonly contextTokens = signal(0);

  /** Counts requests to put the keyboard focus into the composer, where a pressed button disappears. */
  readonly composerFocus = signal(0);

  /** The turn being answered; null when none is. */
  private readonly running: Signal<Turn | null> = signal(null);
  readonly busy = computed(() => this.running.value !== null);
  private abort: AbortController | null = null;
  /** The models of the registry, the default one first; null until it was read. */
  readonly known: Signal<readonly KnownModel[] | null> = signal(null);
  /** What the next load takes; null means the registry's default. */
  readonly wanted: Signal<ModelChoice | null> = signal(null);
  private readonly registryRead: Promise<void>;
  /** Values from the address, which are not stored unless the visitor changes them. */
  private readonly presets: Partial<Settings>;

  constructor(search: string = location.search) {
    this.browser = detectBrowser(navigator.userAgent, navigator.maxTouchPoints);
    const address = readAddress(search);
    this.presets = { ...address.settings };
    this.settings = signal({ ...loadSettings(), ...address.settings });
    this.notices.value = address.problems;
    if (address.model !== null) {
      this.wanted.value = parseChoice(address.model);
      if (!this.wanted.value) {
        this.notify(`model=${address.model} in the address is neither a known model nor the address of a .gguf file.`);
      }
    }
    this.registryRead = this.readRegistry();
    void this.begin();
  }

  private async readRegistry(): Promise<void> {
    const known = await fetchKnownModels();
    this.known.value = known;
    // An id from the address gets its proper name.
    const wanted = this.wanted.peek();
    const entry = known.find((model) => wanted?.kind === 'known' && model.id === wanted.id);
    if (entry) this.wanted.value = chooseKnown(entry);
  }

  /** A model named in the address is loaded at once; otherwise nothing is downloaded until the visitor asks. */
  private async begin(): Promise<void> {
    const [gpu] = await Promise.all([checkGpu(), this.registryRead]);
    this.gpu.value = gpu;
    const wanted = this.wanted.peek();
    if (wanted && gpu.kind === 'ok' && this.loader.state.peek().kind === 'none') void this.load(wanted);
  }

  /** Changes settings and remembers them. */
  set(change: Partial<Settings>): void {
    this.settings.value = { ...this.settings.peek(), ...change };
    for (const key of Object.keys(change)) delete this.presets[key as keyof Settings];
    const stored = loadSettings();
    const keep = Object.fromEntries(Object.keys(this.presets).map((key) => [key, stored[key as keyof Settings]]));
    saveSettings({ ...this.settings.peek(), ...keep });
  }

  notify(text: string): void {
    if (!this.notices.peek().includes(text)) this.notices.value = [...this.notices.peek(), text];
  }

  dismiss(text: string): void {
    this.notices.value = this.notices.peek().filter((notice) => notice !== text);
  }

  /** Loads a model in place of the current one. */
  async load(choice: ModelChoice): Promise<LoadedModel | null> {
    this.abort?.abort();
    batch(() => {
      this.wanted.value = choice;
      this.dialog.value = null;
      this.contextTokens.value = 0;
    });
    return this.start(choice);
  }

  /** Loads the model again, with the settings of now. */
  async reload(): Promise<void> {
    const state = this.loader.state.peek();
    if (state.kind !== 'none') await this.load(state.choice);
  }

  cancelLoad(): void {
    this.abort?.abort();
    this.loader.cancel();
  }

  closeDialog(): void {
    this.dialog.value = null;
  }

  /** Loads the wanted model, or the default one; null when there is none to load or it failed. */
  async loadWanted(): Promise<LoadedModel | null> {
    await this.registryRead;
    const first = this.known.peek()?.[0];
    const choice = this.wanted.peek() ?? (first ? chooseKnown(first) : null);
    if (choice) return this.loader.pending() ?? this.start(choice);
    this.dialog.value = 'models';
    return null;
  }

  private async start(choice: ModelChoice): Promise<LoadedModel | null> {
    const model = await this.loader.load(choice, this.settings.peek());
    if (model?.info.adapter.isSoftware) this.notify(SOFTWARE_NOTICE);
    if (model?.info.hasChatTemplate === false) this.notify(NO_TEMPLATE_NOTICE);
    return model;
  }

  /** Asks `question`, loading the model first if there is none. */
  send(question: string): void {
    const text = question.trim();
    if (text === '' || this.busy.peek()) return;
    const turn = newTurn(text);
    batch(() => {
      this.turns.value = [...this.turns.peek(), turn];
      this.draft.value = '';
      this.composerFocus.value += 1;
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
    this.loader.cancel();
    this.composerFocus.value += 1;
  }

  newChat(): void {
    this.stop();
    batch(() => {
      this.turns.value = [];
      this.contextTokens.value = 0;
      this.announcement.value = 'New chat';
      this.composerFocus.value += 1;
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
    const state = this.loader.state.peek();
    if (state.kind === 'ready') return state.model;
    const model = await this.loadWanted();
    if (model) return model;
    const after = this.loader.state.peek();
    if (after.kind === 'failed') updateAnswer(turn, { status: 'failed', problem: after.problem });
    else if (this.dialog.peek() === 'models') this.takeBack(turn);
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
      const messages = toMessages(this.turns.peek(), this.settings.peek().systemPrompt);
      for await (const part of model.answer(messages, this.settings.peek(), signal)) {
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
      if (problem.code === 'device_lost') this.loader.fail(problem);
    }
  }
}
