/** The cache lab. */
import type { Engine } from 'pagewise';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { LabView } from '../../shell/lab-view';
import { route } from '../../shell/router';
import type { LoadSettings } from '../../state/loader';
import { useSession } from '../../ui/context';
import { Button } from '../../ui/kit';
import { ProblemCard } from '../../ui/problem-card';
import { EngineGate } from '../shared/engine-gate';
import { t as shared } from '../shared/text';
import { BLOCK_SIZE } from '../shared/token-runs';
import { Controls } from './controls';
import { ExperimentList } from './experiment-list';
import { EXPERIMENTS, type ExperimentId } from './experiments';
import { CacheLab, type LabSettings } from './lab';
import { PoolPanel } from './pool-panel';
import { RunPanel } from './run-panel';
import { SavedPanel } from './saved-panel';
import { t } from './text';
import { TriePanel } from './trie-panel';
import '../shared/lab.css';
import './cache.css';

/** What outlives a load for another pool: the settings, and the experiment to run again. */
interface Kept {
  readonly settings: Partial<LabSettings>;
  experiment: ExperimentId | null;
}

export default function CacheLabView(): JSX.Element {
  // An address may ask for an experiment: `#/labs/cache?experiment=same`.
  const asked = route.peek().query.get('experiment');
  const kept = useRef<Kept>({ settings: {}, experiment: EXPERIMENTS.find((id) => id === asked) ?? null });
  return (
    <LabView lead={t('lead')}>
      <EngineGate why={t('why')}>
        {(engine) => <Lab key={engine.info.id + engine.info.contextLength} engine={engine} kept={kept.current} />}
      </EngineGate>
    </LabView>
  );
}

function Lab({ engine, kept }: { engine: Engine; kept: Kept }): JSX.Element {
  const session = useSession();
  const lab = useMemo(() => new CacheLab(engine, kept.settings), [engine]);
  const start = (id: ExperimentId): void => {
    const blocks = lab.poolFor(id);
    if (blocks === null) void lab.start(id);
    else reload({ contextLength: blocks * BLOCK_SIZE }, id);
  };
  /** Loads the model for another pool, and runs an experiment again in it. */
  const reload = (change: Partial<LoadSettings>, id: ExperimentId | null): void => {
    kept.experiment = id;
    void session.loadFor(change);
  };
  useEffect(() => {
    const stop = (): void => lab.job.stop();
    session.beforeLoad.add(stop);
    const asked = kept.experiment;
    kept.experiment = null;
    if (asked) start(asked);
    return () => {
      session.beforeLoad.delete(stop);
      lab.close();
    };
  }, [lab, session]);
  // What a lab loads for itself ends with it.
  useEffect(() => () => void session.restore(), [session]);
  const problem = lab.job.problem.value;
  return (
    <>
      <ExperimentList lab={lab} onStart={start} />
      {problem && <ProblemCard problem={problem} onRetry={() => lab.run.value && start(lab.run.value.id)} />}
      {lab.run.value && <RunPanel run={lab.run.value} />}
      <PoolPanel lab={lab} />
      <TriePanel lab={lab} />
      <SavedPanel lab={lab} />
      <Controls lab={lab} onReload={(change) => reload(change, lab.run.peek()?.id ?? null)} />
      {lab.job.busy.value && (
        <div class="lab-stop">
          <Button icon="stop" onClick={() => lab.job.stop()}>
            {shared('stop')}
          </Button>
        </div>
      )}
    </>
  );
}
