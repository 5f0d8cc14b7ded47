/** A problem with what to do next, inside the conversation or instead of it. */
import type { JSX } from 'preact';
import { type AdviceAction, adviceFor } from '../state/advice';
import type { Problem } from '../state/problem';
import { useApp } from './context';
import { Icon } from './icons';

const LABELS: Readonly<Record<AdviceAction, string>> = {
  retry: 'Try again',
  choose_model: 'Choose a model',
  settings: 'Open settings',
  new_chat: 'New chat',
  reload: 'Reload the page',
};

export interface ProblemCardProps {
  readonly problem: Problem;
  readonly onRetry: () => void;
  /** Whether the buttons are offered; an old turn's card only tells what happened. */
  readonly isCurrent?: boolean;
}

export function ProblemCard({ problem, onRetry, isCurrent = true }: ProblemCardProps): JSX.Element {
  const app = useApp();
  const advice = adviceFor(problem.code, app.browser);
  const act = (action: AdviceAction): void => {
    if (action === 'retry') onRetry();
    else if (action === 'choose_model') app.dialog.value = 'models';
    else if (action === 'settings') app.dialog.value = 'settings';
    else if (action === 'new_chat') app.newChat();
    else location.reload();
  };
  return (
    <section class="card problem" role="alert">
      <h2>
        <Icon name="alert" />
        {advice.title}
      </h2>
      <p>{advice.text}</p>
      {problem.detail !== '' && <p class="detail">{problem.detail}</p>}
      {isCurrent && (
        <>
          <ol>
            {advice.steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
          {advice.actions.length > 0 && (
            <div class="actions">
              {advice.actions.map((action, index) => (
                <button
                  key={action}
                  type="button"
                  class={index === 0 ? 'button primary' : 'button'}
                  onClick={() => act(action)}
                >
                  {LABELS[action]}
                </button>
              ))}
            </div>
          )}
        </>
      )}
    </section>
  );
}
