/** The bar at the top: the mark, the model, new chat, settings. */
import type { JSX } from 'preact';
import { modelName } from '../state/loader';
import { useApp } from './context';
import { Icon, Mark } from './icons';

export function Bar(): JSX.Element {
  const app = useApp();
  const name = modelName(app.loader.state.value);
  return (
    <header class="bar">
      <h1 class="brand">
        <Mark />
        <span class="brand-name">Pagewise</span>
      </h1>
      <button
        type="button"
        class="button quiet model-button"
        aria-haspopup="dialog"
        onClick={() => {
          app.dialog.value = 'models';
        }}
      >
        <span class="visually-hidden">Model: </span>
        <span class="name">{name || 'Choose a model'}</span>
        <Icon name="chevron" />
      </button>
      <div class="spacer" />
      <button
        type="button"
        class="button quiet new-chat"
        aria-label="New chat"
        disabled={app.turns.value.length === 0}
        onClick={() => app.newChat()}
      >
        <Icon name="plus" />
        <span class="label">New chat</span>
      </button>
      <button
        type="button"
        class="icon-button"
        aria-label="Settings"
        aria-haspopup="dialog"
        onClick={() => {
          app.dialog.value = 'settings';
        }}
      >
        <Icon name="settings" />
      </button>
    </header>
  );
}
