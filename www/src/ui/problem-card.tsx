/** A problem with what to do next, inside the conversation or instead of it. */
import type { JSX } from 'preact';
import { type AdviceAction, actionLabel, adviceFor } from '../state/advice';
import type { Problem } from '../state/problem';
import { useSession } from './context';
import { Button, Icon } from './kit';

export interface ProblemCardProps {
  readonly problem: Problem;
  readonly onRetry: () => void;
  /** What "New chat" does, where there is a chat; without it that button is not offered. */
  readonly onNewChat?: () => void;
  /** Whether the buttons are offered; an old turn's card only tells what happened. */
  readonly isCurrent?: boolean;
}

export function ProblemCard({ problem, onRetry, onNewChat, isCurrent = true }: ProblemCardProps): JSX.Element {
  const session = useSession();
  const advice = adviceFor(problem.code, session.browser);
  const act = (action: AdviceAction): void => {
    if (action === 'retry') onRetry();
    else if (action === 'choose_model') session.dialog.value = 'models';
    else if (action === 'settings') session.dialog.value = 'settings';
    else if (action === 'new_chat') onNewChat?.();
    else location.reload();
  };
  const actions = advice.actions.filter((action) => action !== 'new_chat' || onNewChat);
  return (
    <section class="card problem" role="alert">
      <h2>
        <Icon name="alert" />
        {advice.title}
      </h2>
      <p>{advice.text}</p>
      {problem.detail !== '' && (
        <p class="detail" lang="en">
          {problem.detail}
        </p>
      )}
      {isCurrent && (
        <>
          <ol>
            {advice.steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ol>
          {actions.length > 0 && (
            <div class="actions">
              {actions.map((action, index) => (
                <Button key={action} kind={index === 0 ? 'primary' : 'plain'} onClick={() => act(action)}>
                  {actionLabel(action)}
                </Button>
              ))}
            </div>
          )}
        </>
      )}
    </section>
  );
}
