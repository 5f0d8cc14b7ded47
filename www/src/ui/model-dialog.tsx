/** Choosing a model: a known one, an address, or a file from this computer. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { choiceFromFiles, chooseKnown, type ModelChoice, parseChoice } from '../state/models';
import { useApp } from './context';
import { Dialog } from './dialog';
import { ModelFacts } from './model-facts';

export function ModelDialog(): JSX.Element {
  const app = useApp();
  const state = app.loader.state.value;
  const loadedId = state.kind === 'ready' && state.choice.kind === 'known' ? state.choice.id : null;
  const load = (choice: ModelChoice): void => void app.load(choice);
  return (
    <Dialog title="Choose a model" shape="box" onClose={() => app.closeDialog()}>
      {app.known.value?.length === 0 && (
        <p class="help">The list of models could not be read. Files and addresses work.</p>
      )}
      <ul class="models">
        {app.known.value?.map((model) => (
          <li key={model.id}>
            <button
              type="button"
              class="model-card"
              aria-current={model.id === loadedId ? 'true' : undefined}
              onClick={() => load(chooseKnown(model))}
            >
              <strong>{model.name}</strong>
              <ModelFacts model={model} />
              <span class="side">{model.id === loadedId ? 'Loaded' : 'Load'}</span>
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
      <p class="or">From this computer</p>
      <button type="button" class="button" onClick={() => input.current?.click()}>
        Choose a .gguf file
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Model file"
        onChange={(event) => {
          const choice = choiceFromFiles(event.currentTarget.files ?? []);
          if (choice) onChoose(choice);
        }}
      />
      <p class="help">
        Or drop it anywhere on the page. It is read here and not uploaded. Choose all parts of a split model together.
      </p>
    </>
  );
}

function AddressField({ onChoose }: FieldProps): JSX.Element {
  const address = useSignal('');
  const isWrong = useSignal(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const choice = parseChoice(address.value);
    isWrong.value = choice === null;
    if (choice) onChoose(choice);
  };
  return (
    <form onSubmit={submit}>
      <label class="or field" for="model-address">
        From an address
      </label>
      <div class="row">
        <input
          id="model-address"
          class="input"
          type="text"
          inputMode="url"
          autocomplete="off"
          spellcheck={false}
          placeholder="https://…/model.gguf"
          value={address.value}
          aria-invalid={isWrong.value}
          aria-describedby="model-address-help"
          onInput={(event) => {
            address.value = event.currentTarget.value;
            isWrong.value = false;
          }}
        />
        <button type="submit" class="button" disabled={address.value.trim() === ''}>
          Load
        </button>
      </div>
      <p class="help" id="model-address-help" aria-live="polite">
        {isWrong.value
          ? 'This is not an address: it should look like https://…/model.gguf'
          : 'A GGUF file on a server that allows other pages to read it, as Hugging Face does.'}
      </p>
    </form>
  );
}
