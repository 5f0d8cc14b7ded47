/** Shows its children once a model is loaded; before, how to get one. */
import type { Engine } from 'pagewise';
import type { ComponentChildren, JSX } from 'preact';
import { useSession } from '../../ui/context';
import { Button, Panel } from '../../ui/kit';
import { LoadingCard } from '../../ui/loading-card';
import { ProblemCard } from '../../ui/problem-card';
import { t } from './text';

export interface EngineGateProps {
  /** What the model is needed for, as a sentence. */
  readonly why: string;
  readonly children: (engine: Engine) => ComponentChildren;
}

export function EngineGate({ why, children }: EngineGateProps): JSX.Element {
  const session = useSession();
  const state = session.loader.state.value;
  if (state.kind === 'ready') return <>{children(state.model.engine)}</>;
  if (state.kind === 'loading') return <LoadingCard state={state} />;
  if (state.kind === 'failed') {
    return <ProblemCard problem={state.problem} onRetry={() => void session.load(state.choice)} />;
  }
  return (
    <Panel title={t('needsModel')} lead={why}>
      <div class="actions">
        <Button kind="primary" onClick={() => void session.loadWanted()}>
          {t('loadModel')}
        </Button>
      </div>
    </Panel>
  );
}
