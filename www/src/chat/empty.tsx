/** The empty state: what this is, the model to load, and something to ask. */
import type { JSX } from 'preact';
import { useSession } from '../ui/context';
import { LoadingCard } from '../ui/loading-card';
import { ModelFacts } from '../ui/model-facts';
import { useChat } from './context';

const PROMPTS = [
  'Explain how a rainbow forms, in three sentences.',
  'Write a short poem about a lighthouse in winter.',
  'What should I look at when I buy a used bicycle?',
  'Write a Python function that reverses a list.',
] as const;

export function Empty(): JSX.Element {
  const app = useChat();
  return (
    <div class="empty">
      <h2>A language model on your own GPU</h2>
      <p class="lead">
        Pagewise runs the whole model inside this page. Nothing you write leaves it: there is no server, no account and
        nothing is stored.
      </p>
      <ModelOffer />
      <p class="or" id="examples">
        Try one of these
      </p>
      <ul class="prompts" aria-labelledby="examples">
        {PROMPTS.map((prompt) => (
          <li key={prompt}>
            <button type="button" onClick={() => app.send(prompt)}>
              {prompt}
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
  if (state.kind === 'loading') {
    return (
      <div class="offer">
        <LoadingCard state={state} />
      </div>
    );
  }
  const first = session.known.value?.[0];
  if (state.kind !== 'none' || !first) return null;
  return (
    <button type="button" class="model-card" onClick={() => void session.loadWanted()}>
      <strong>{first.name}</strong>
      <ModelFacts model={first} />
      <span class="side">Load</span>
    </button>
  );
}
