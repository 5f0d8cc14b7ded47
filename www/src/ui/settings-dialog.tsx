/** Appearance, sampling, loading and storage settings. Every change holds from the next answer on. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { t as core } from '../i18n/core';
import { Appearance } from '../shell/nav';
import {
  DEFAULT_SETTINGS,
  type KvFormat,
  NUMBER_FIELDS,
  type NumberField,
  OPTIONAL_FIELDS,
  parseNumber,
} from '../state/settings';
import { t } from '../state/settings-text';
import { useSession } from './context';
import { Button, Choices, Dialog, Switch } from './kit';

const KV_FORMATS: readonly KvFormat[] = ['f16', 'f32'];

export default function SettingsDialog(): JSX.Element {
  const session = useSession();
  const { storeModels } = session.settings.value;
  return (
    <Dialog title={core('settings')} shape="sheet" onClose={() => session.closeDialog()}>
      <section class="group">
        <Appearance />
      </section>
      <section class="group">
        <h3>{t('sampling')}</h3>
        {NUMBER_FIELDS.map((field) => (
          <NumberSetting key={field.key} field={field} hasSlider />
        ))}
        {OPTIONAL_FIELDS.filter(({ key }) => key === 'seed').map((field) => (
          <NumberSetting key={field.key} field={field} />
        ))}
      </section>
      <section class="group">
        <h3>{t('memory')}</h3>
        {OPTIONAL_FIELDS.filter(({ key }) => key === 'contextLength').map((field) => (
          <NumberSetting key={field.key} field={field} />
        ))}
        <KvSetting />
        <ReloadHint />
      </section>
      <section class="group">
        <h3>{t('storage')}</h3>
        <Switch
          label={t('storeModels')}
          help={t('storeModelsHelp')}
          checked={storeModels}
          onChange={(checked) => session.set({ storeModels: checked })}
        />
      </section>
      <div class="actions">
        <Button onClick={() => session.set({ ...DEFAULT_SETTINGS })}>{t('resetAll')}</Button>
      </div>
    </Dialog>
  );
}

function NumberSetting({ field, hasSlider = false }: { field: NumberField; hasSlider?: boolean }): JSX.Element {
  const session = useSession();
  const stored = session.settings.value[field.key];
  // What is being typed, while it is not a number within bounds.
  const typed = useSignal<string | null>(null);
  const isOptional = !hasSlider;
  const id = `setting-${field.param}`;
  const label = t(field.key);

  const onInput = (text: string): void => {
    if (isOptional && text.trim() === '') {
      typed.value = null;
      session.set({ [field.key]: null });
      return;
    }
    const value = parseNumber(field, text);
    typed.value = value === null ? text : null;
    if (value !== null) session.set({ [field.key]: value });
  };

  return (
    <div class="field">
      <div class="field-head">
        <label for={id}>{label}</label>
        <input
          id={id}
          class="input number"
          type="text"
          inputMode="decimal"
          autocomplete="off"
          placeholder={isOptional ? t('auto') : ''}
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
          aria-label={t('slider', { name: label })}
          min={field.min}
          max={field.max}
          step={field.step}
          value={stored ?? field.min}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      <p class="help" id={`${id}-help`}>
        {typed.value === null ? t(`${field.key}Help`) : t('range', { min: field.min, max: field.max })}
      </p>
    </div>
  );
}

function KvSetting(): JSX.Element {
  const session = useSession();
  return (
    <div class="field">
      <Choices
        label={t('kvFormat')}
        options={KV_FORMATS.map((value) => ({ value, label: value }))}
        value={session.settings.value.kvFormat}
        onChange={(kvFormat) => session.set({ kvFormat })}
      />
      <p class="help">{t('kvFormatHelp')}</p>
    </div>
  );
}

/** Memory settings hold from the next load on; offers it when they differ from the loaded model's. */
function ReloadHint(): JSX.Element | null {
  const session = useSession();
  const { contextLength, kvFormat } = session.settings.value;
  const isLoaded = session.loader.state.value.kind === 'ready';
  const used = session.loader.loadedWith;
  if (!isLoaded || !used || (used.contextLength === contextLength && used.kvFormat === kvFormat)) return null;
  return (
    <div class="actions">
      <Button kind="primary" onClick={() => void session.reload()}>
        {t('reloadWith')}
      </Button>
    </div>
  );
}
