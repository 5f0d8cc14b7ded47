/** The empty state: what this is, the model to load, and something to ask. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useSession } from '../ui/context';
import { LoadingCard } from '../ui/loading-card';
import { ModelFacts } from '../ui/model-facts';
import { useChat } from './context';
import { t } from './text';

const PROMPTS = ['promptRainbow', 'promptPoem', 'promptBicycle', 'promptPython'] as const;

export function Empty(): JSX.Element {
  const chat = useChat();
  return (
    <div class="empty">
      <h2>{t('emptyTitle')}</h2>
      <p class="lead">{t('emptyLead')}</p>
      <ModelOffer />
      <p class="or" id="examples">
        {t('tryOne')}
      </p>
      <ul class="prompts" aria-labelledby="examples">
        {PROMPTS.map((prompt) => (
          <li key={prompt}>
            <button type="button" onClick={() => chat.send(t(prompt))}>
              {t(prompt)}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The default model with a button to load it, its progress, or nothing once a model is there. */
function ModelOffer(): JSX.Element | null {
  const session = useSession();
  const state = session.loader.state.value;
  useEffect(() => {
    if (state.kind === 'none') void session.lookForStored();
  }, [session, state.kind]);
  if (state.kind === 'loading') {
    return (
      <div class="offer">
        <LoadingCard state={state} />
      </div>
    );
  }
  const known = session.known.value;
  const first = known?.[0];
  if (state.kind !== 'none') return null;
  if (known === null) return <CardToCome />;
  if (!first) return null;
  return (
    <button type="button" class="model-card" onClick={() => void session.loadWanted()}>
      <strong>{first.name}</strong>
      <ModelFacts model={first} />
      <span class="side">{t('load')}</span>
    </button>
  );
}

/** Keeps the card's place while the list of models is read: nothing moves when it comes. */
function CardToCome(): JSX.Element {
  return (
    <div class="model-card to-come" aria-hidden="true">
      <strong>{'\u00a0'}</strong>
      <span class="facts">{'\u00a0'}</span>
    </div>
  );
}
