/** Loads one model at a time and says how far it is. */
import { type Signal, signal } from '@preact/signals';
import type { LoadedModel, LoadPhase, Scheduling } from './engine';
import { choiceName, type ModelChoice } from './models';
import { isCancelled, type Problem, toProblem } from './problem';
import { type Pace, PaceMeter } from './progress';
import type { Settings } from './settings';

export interface LoadingProgress {
  readonly phase: LoadPhase;
  readonly loadedBytes: number;
  /** null while the size is not known yet. */
  readonly totalBytes: number | null;
  readonly pace: Pace;
}

export type ModelState =
  | { readonly kind: 'none' }
  | { readonly kind: 'loading'; readonly choice: ModelChoice; readonly progress: LoadingProgress }
  | { readonly kind: 'ready'; readonly choice: ModelChoice; readonly model: LoadedModel }
  | { readonly kind: 'failed'; readonly choice: ModelChoice; readonly problem: Problem };

const NO_PACE: Pace = { bytesPerS: null, secondsLeft: null };

/** The parts of the settings that hold for as long as a model is loaded. */
export interface LoadSettings extends Pick<Settings, 'contextLength' | 'kvFormat' | 'storeModels'> {
  readonly scheduling?: Scheduling;
}

export class ModelLoader {
  readonly state: Signal<ModelState> = signal({ kind: 'none' });
  /** The settings the current model was loaded with. */
  loadedWith: Pick<Settings, 'contextLength' | 'kvFormat'> | null = null;
  private abort: AbortController | null = null;
  private current: Promise<LoadedModel | null> | null = null;

  /** Loads `choice` in place of whatever is there. Resolves to null when it was cancelled or failed; never rejects. */
  load(choice: ModelChoice, settings: LoadSettings): Promise<LoadedModel | null> {
    this.cancel();
    const abort = new AbortController();
    this.abort = abort;
    const before = this.state.peek();
    this.state.value = {
      kind: 'loading',
      choice,
      progress: { phase: 'header', loadedBytes: 0, totalBytes: null, pace: NO_PACE },
    };
    this.current = this.run(choice, settings, abort, before.kind === 'ready' ? before.model : null);
    return this.current;
  }

  /** The load under way or its result, so that several callers wait for one load. */
  pending(): Promise<LoadedModel | null> | null {
    return this.state.peek().kind === 'loading' ? this.current : null;
  }

  /** Ends a load under way; a model that is loaded stays. */
  cancel(): void {
    this.abort?.abort();
    this.abort = null;
    if (this.state.peek().kind === 'loading') this.state.value = { kind: 'none' };
  }

  /** Notes that the loaded model can no longer be used. */
  fail(problem: Problem): void {
    const state = this.state.peek();
    if (state.kind !== 'ready') return;
    void state.model.unload();
    this.state.value = { kind: 'failed', choice: state.choice, problem };
  }

  /** Frees the loaded model, or ends the load under way. */
  async unload(): Promise<void> {
    this.cancel();
    const state = this.state.peek();
    this.state.value = { kind: 'none' };
    if (state.kind === 'ready') await state.model.unload();
  }

  private async run(
    choice: ModelChoice,
    settings: LoadSettings,
    abort: AbortController,
    old: LoadedModel | null,
  ): Promise<LoadedModel | null> {
    const isCurrent = (): boolean => this.abort === abort;
    const meter = new PaceMeter();
    try {
      // First, so that both models never have to fit at once.
      await old?.unload();
      // The engine's module comes with the first model.
      const { loadModel } = await import('./engine');
      const model = await loadModel(choice, {
        ...settings,
        signal: abort.signal,
        onProgress: ({ phase, loadedBytes, totalBytes }) => {
          if (!isCurrent()) return;
          const pace = meter.update(loadedBytes, totalBytes, performance.now());
          this.state.value = { kind: 'loading', choice, progress: { phase, loadedBytes, totalBytes, pace } };
        },
      });
      if (!isCurrent()) {
        void model.unload();
        return null;
      }
      // A loaded model is no longer cancelled by this.
      this.abort = null;
      this.loadedWith = { contextLength: settings.contextLength, kvFormat: settings.kvFormat };
      this.state.value = { kind: 'ready', choice, model };
      return model;
    } catch (error) {
      if (!isCurrent()) return null;
      this.abort = null;
      this.state.value = isCancelled(error) ? { kind: 'none' } : { kind: 'failed', choice, problem: toProblem(error) };
      return null;
    }
  }
}

/** The name to show for a model in any state. */
export function modelName(state: ModelState): string {
  if (state.kind === 'none') return '';
  return state.kind === 'ready' ? state.model.info.name || choiceName(state.choice) : choiceName(state.choice);
}
