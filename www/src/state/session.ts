/**
 * What every view shares: the GPU, the settings, the loaded model, dialogs, notices and what a screen reader says next.
 * The chat's own state is in src/chat/; labs use the loaded model through `session.engine`.
 */
import { batch, computed, type Signal, signal } from '@preact/signals';
import { t as core } from '../i18n/core';
import { whenIdle } from '../idle';
import { type Browser, checkGpu, detectBrowser, type GpuCheck } from './browser';
import type { LoadedModel } from './engine';
import { type LoadSettings, ModelLoader } from './loader';
import { choiceName, chooseKnown, fetchKnownModels, type KnownModel, type ModelChoice, parseChoice } from './models';
import { Notices } from './notices';
import { type AddressProblem, loadSettings, readAddress, type Settings, saveSettings } from './settings';
import { t } from './settings-text';
import { findStored } from './stored';

export type DialogName = 'settings' | 'models' | 'privacy';

export class Session {
  readonly browser: Browser;
  readonly gpu: Signal<GpuCheck> = signal({ kind: 'checking' });
  readonly settings: Signal<Settings>;
  readonly loader = new ModelLoader();
  readonly notices = new Notices();
  readonly dialog: Signal<DialogName | null> = signal(null);
  /** What a screen reader should say next. */
  readonly announcement = signal('');
  /** The loaded model's engine, for whoever needs all of its API; null without one. */
  readonly engine = computed(() => {
    const state = this.loader.state.value;
    return state.kind === 'ready' ? state.model.engine : null;
  });
  /** The models of the registry, the default one first; null until it was read. */
  readonly known: Signal<readonly KnownModel[] | null> = signal(null);
  /** Ids of those that are on this device. */
  readonly stored: Signal<ReadonlySet<string>> = signal(new Set());
  /** What the next load takes; null means the registry's default. */
  readonly wanted: Signal<ModelChoice | null> = signal(null);
  /** Takes files that are dropped and are no model; set by a view that wants them. */
  readonly takeFiles: Signal<((files: readonly File[]) => void) | null> = signal(null);
  /** Called before a model is replaced: whoever uses it stops. */
  readonly beforeLoad = new Set<() => void>();
  /** The model that a lab has loaded with settings of its own. */
  private lent: LoadedModel | null = null;
  private readonly registryRead: Promise<void>;
  /** Values from the address, which are not stored unless the visitor changes them. */
  private readonly presets: Partial<Settings>;

  constructor(search: string = location.search) {
    this.browser = detectBrowser(navigator.userAgent, navigator.maxTouchPoints);
    const address = readAddress(search);
    this.presets = { ...address.settings };
    this.settings = signal({ ...loadSettings(), ...address.settings });
    for (const problem of address.problems) this.noteAddress(problem);
    if (address.model !== null) {
      this.wanted.value = parseChoice(address.model);
      if (!this.wanted.value) this.noteAddress({ param: 'model', value: address.model, allowed: null });
    }
    this.registryRead = this.readRegistry();
    void this.begin();
  }

  private noteAddress({ param, value, allowed }: AddressProblem): void {
    const text = (): string => {
      if (allowed === null) return t('addressModel', { value });
      if (typeof allowed === 'string') return t('addressNames', { param, value, allowed });
      return t('addressRange', { param, value, min: allowed[0], max: allowed[1] });
    };
    this.notices.show({ id: `address ${param}`, text });
  }

  private async readRegistry(): Promise<void> {
    const known = await fetchKnownModels();
    this.known.value = known;
    // An id from the address gets its proper name.
    const wanted = this.wanted.peek();
    const entry = known.find((model) => wanted?.kind === 'known' && model.id === wanted.id);
    if (entry) this.wanted.value = chooseKnown(entry);
    else if (wanted && this.isUnknown(wanted)) {
      this.wanted.value = null;
      this.noteUnknown(choiceName(wanted));
    }
  }

  /** Whether a choice is an id that the list does not have. Without a list nobody knows. */
  isUnknown(choice: ModelChoice): boolean {
    const known = this.known.peek() ?? [];
    return choice.kind === 'known' && known.length > 0 && !known.some(({ id }) => id === choice.id);
  }

  private noteUnknown(value: string): void {
    const run = (): void => {
      this.dialog.value = 'models';
    };
    const action = { label: () => core('chooseModel'), run };
    this.notices.show({ id: 'address model', text: () => t('addressUnknown', { value }), action });
  }

  /** Finds out which known models are on this device, once the page has nothing better to do. */
  async lookForStored(): Promise<void> {
    await this.registryRead;
    await whenIdle();
    this.stored.value = await findStored(this.known.peek() ?? []);
  }

  /** A model named in the address is loaded at once; otherwise nothing is downloaded until the visitor asks. */
  private async begin(): Promise<void> {
    // Asking for an adapter starts the browser's GPU process and perhaps a second GPU: the page is drawn first.
    if (!this.wanted.peek()) await whenIdle();
    const [gpu] = await Promise.all([checkGpu(), this.registryRead]);
    this.gpu.value = gpu;
    const wanted = this.wanted.peek();
    if (wanted && gpu.kind === 'ok' && this.loader.state.peek().kind === 'none') void this.start(wanted);
  }

  /** Changes settings and remembers them. */
  set(change: Partial<Settings>): void {
    this.settings.value = { ...this.settings.peek(), ...change };
    for (const key of Object.keys(change)) delete this.presets[key as keyof Settings];
    const stored = loadSettings();
    const keep = Object.fromEntries(Object.keys(this.presets).map((key) => [key, stored[key as keyof Settings]]));
    saveSettings({ ...this.settings.peek(), ...keep });
  }

  /** Loads a model in place of the current one. */
  async load(choice: ModelChoice): Promise<LoadedModel | null> {
    for (const stop of this.beforeLoad) stop();
    batch(() => {
      this.wanted.value = choice;
      this.dialog.value = null;
    });
    return this.start(choice);
  }

  /** Loads the model again, with the settings of now. */
  async reload(): Promise<void> {
    const state = this.loader.state.peek();
    if (state.kind !== 'none') await this.load(state.choice);
  }

  /**
   * Loads the model of now, else the wanted one, with settings that hold for this load only: for labs. {@link restore} goes
   * back to the visitor's.
   */
  async loadFor(change: Partial<LoadSettings>): Promise<LoadedModel | null> {
    for (const stop of this.beforeLoad) stop();
    await this.registryRead;
    const state = this.loader.state.peek();
    const first = this.known.peek()?.[0];
    const choice = state.kind === 'none' ? (this.wanted.peek() ?? (first && chooseKnown(first))) : state.choice;
    if (!choice) {
      this.dialog.value = 'models';
      return null;
    }
    const model = await this.start(choice, change);
    this.lent = model;
    return model;
  }

  /** Loads the model as the visitor set it, if a lab has loaded it otherwise. */
  async restore(): Promise<void> {
    const state = this.loader.state.peek();
    const isLent = state.kind === 'ready' && state.model === this.lent;
    this.lent = null;
    if (isLent) await this.load(state.choice);
  }

  cancelLoad(): void {
    for (const stop of this.beforeLoad) stop();
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

  private async start(choice: ModelChoice, change: Partial<LoadSettings> = {}): Promise<LoadedModel | null> {
    const model = await this.loader.load(choice, { ...this.settings.peek(), ...change });
    if (model?.info.adapter.isSoftware) this.notices.show({ id: 'software', text: () => t('softwareNotice') });
    if (model?.info.hasChatTemplate === false) this.notices.show({ id: 'template', text: () => t('templateNotice') });
    return model;
  }
}
