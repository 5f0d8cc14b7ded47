/** Choosing a model: a known one, an address, or a file from this computer. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { t as core } from '../i18n/core';
import { choiceFromFiles, chooseKnown, type ModelChoice, parseChoice } from '../state/models';
import { t } from '../state/settings-text';
import { useSession } from './context';
import { Button, Dialog } from './kit';
import { ModelFacts } from './model-facts';

const EXAMPLE = 'https://…/model.gguf';

export default function ModelDialog(): JSX.Element {
  const session = useSession();
  const state = session.loader.state.value;
  const loadedId = state.kind === 'ready' && state.choice.kind === 'known' ? state.choice.id : null;
  useEffect(() => void session.lookForStored(), [session]);
  const load = (choice: ModelChoice): void => void session.load(choice);
  return (
    <Dialog title={core('chooseModel')} shape="box" onClose={() => session.closeDialog()}>
      {session.known.value?.length === 0 && <p class="help">{t('modelsUnread')}</p>}
      <ul class="models">
        {session.known.value?.map((model) => (
          <li key={model.id}>
            <button
              type="button"
              class="model-card"
              aria-current={model.id === loadedId ? 'true' : undefined}
              onClick={() => load(chooseKnown(model))}
            >
              <strong>{model.name}</strong>
              <ModelFacts model={model} />
              <span class="side">{model.id === loadedId ? t('loaded') : t('load')}</span>
            </button>
          </li>
        ))}
      </ul>
      <FileField onChoose={load} />
      <AddressField onChoose={load} />
    </Dialog>
  );
}

interface FieldProps {
  readonly onChoose: (choice: ModelChoice) => void;
}

function FileField({ onChoose }: FieldProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <p class="or">{t('fromComputer')}</p>
      <Button onClick={() => input.current?.click()}>{t('chooseFile')}</Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={t('modelFile')}
        onChange={(event) => {
          const choice = choiceFromFiles(event.currentTarget.files ?? []);
          if (choice) onChoose(choice);
        }}
      />
      <p class="help">{t('chooseFileHelp')}</p>
    </>
  );
}

function AddressField({ onChoose }: FieldProps): JSX.Element {
  const session = useSession();
  const address = useSignal('');
  const isWrong = useSignal(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const choice = parseChoice(address.value);
    isWrong.value = choice === null || session.isUnknown(choice);
    if (choice && !isWrong.value) onChoose(choice);
  };
  return (
    <form onSubmit={submit}>
      <label class="or field" for="model-address">
        {t('fromAddress')}
      </label>
      <div class="row">
        <input
          id="model-address"
          class="input"
          type="text"
          inputMode="url"
          autocomplete="off"
          spellcheck={false}
          placeholder={EXAMPLE}
          value={address.value}
          aria-invalid={isWrong.value}
          aria-describedby="model-address-help"
          onInput={(event) => {
            address.value = event.currentTarget.value;
            isWrong.value = false;
          }}
        />
        <Button type="submit" disabled={address.value.trim() === ''}>
          {t('load')}
        </Button>
      </div>
      <p class="help" id="model-address-help" aria-live="polite">
        {isWrong.value ? t('addressWrong', { example: EXAMPLE }) : t('addressHelp')}
      </p>
    </form>
  );
}
