/** Sampling, system prompt and loading settings. Every change holds from the next answer on. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import {
  DEFAULT_SETTINGS,
  type KvFormat,
  NUMBER_FIELDS,
  type NumberField,
  OPTIONAL_FIELDS,
  parseNumber,
} from '../state/settings';
import { useApp } from './context';
import { Dialog } from './dialog';

const KV_FORMATS: readonly KvFormat[] = ['f16', 'f32'];

export function SettingsDialog(): JSX.Element {
  const app = useApp();
  const settings = app.settings.value;
  return (
    <Dialog title="Settings" shape="sheet" onClose={() => app.closeDialog()}>
      <section class="group">
        <label class="field">
          <span class="field-head">System prompt</span>
          <textarea
            class="input"
            rows={4}
            placeholder="How the model should behave"
            value={settings.systemPrompt}
            onInput={(event) => app.set({ systemPrompt: event.currentTarget.value })}
          />
        </label>
      </section>
      <section class="group">
        <h3>Sampling</h3>
        {NUMBER_FIELDS.map((field) => (
          <NumberSetting key={field.key} field={field} hasSlider />
        ))}
        {OPTIONAL_FIELDS.filter(({ key }) => key === 'seed').map((field) => (
          <NumberSetting key={field.key} field={field} />
        ))}
      </section>
      <section class="group">
        <h3>Memory</h3>
        {OPTIONAL_FIELDS.filter(({ key }) => key === 'contextLength').map((field) => (
          <NumberSetting key={field.key} field={field} />
        ))}
        <KvSetting />
        <ReloadHint />
      </section>
      <div class="actions">
        <button type="button" class="button" onClick={() => app.set({ ...DEFAULT_SETTINGS })}>
          Reset all
        </button>
      </div>
    </Dialog>
  );
}

function NumberSetting({ field, hasSlider = false }: { field: NumberField; hasSlider?: boolean }): JSX.Element {
  const app = useApp();
  const stored = app.settings.value[field.key];
  // What is being typed, while it is not a number within bounds.
  const typed = useSignal<string | null>(null);
  const isOptional = !hasSlider;
  const id = `setting-${field.param}`;

  const onInput = (text: string): void => {
    if (isOptional && text.trim() === '') {
      typed.value = null;
      app.set({ [field.key]: null });
      return;
    }
    const value = parseNumber(field, text);
    typed.value = value === null ? text : null;
    if (value !== null) app.set({ [field.key]: value });
  };

  return (
    <div class="field">
      <div class="field-head">
        <label for={id}>{field.label}</label>
        <input
          id={id}
          class="input number"
          type="text"
          inputMode="decimal"
          autocomplete="off"
          placeholder={isOptional ? 'auto' : ''}
          value={typed.value ?? (stored === null ? '' : String(stored))}
          aria-invalid={typed.value !== null}
          aria-describedby={`${id}-help`}
          onInput={(event) => onInput(event.currentTarget.value)}
          onBlur={() => {
            typed.value = null;
          }}
        />
      </div>
      {hasSlider && (
        <input
          type="range"
          aria-label={`${field.label} slider`}
          min={field.min}
          max={field.max}
          step={field.step}
          value={stored ?? field.min}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      <p class="help" id={`${id}-help`}>
        {typed.value === null ? field.help : `A number from ${field.min} to ${field.max}.`}
      </p>
    </div>
  );
}

function KvSetting(): JSX.Element {
  const app = useApp();
  return (
    <div class="field">
      <div class="field-head">
        <span id="setting-kv">KV cache format</span>
        <div class="choices" role="radiogroup" aria-labelledby="setting-kv">
          {KV_FORMATS.map((format) => (
            <label key={format}>
              <input
                type="radio"
                name="kv"
                checked={app.settings.value.kvFormat === format}
                onChange={() => app.set({ kvFormat: format })}
              />
              {format}
            </label>
          ))}
        </div>
      </div>
      <p class="help">f16 takes half the memory of f32, with next to no difference in answers.</p>
    </div>
  );
}

/** Memory settings hold from the next load on; offers it when they differ from the loaded model's. */
function ReloadHint(): JSX.Element | null {
  const app = useApp();
  const { contextLength, kvFormat } = app.settings.value;
  const isLoaded = app.loader.state.value.kind === 'ready';
  const used = app.loader.loadedWith;
  if (!isLoaded || !used || (used.contextLength === contextLength && used.kvFormat === kvFormat)) return null;
  return (
    <div class="actions">
      <button type="button" class="button primary" onClick={() => void app.reload()}>
        Load again with these
      </button>
    </div>
  );
}
