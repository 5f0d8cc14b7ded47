/** The latency-floor lab. */
import type { Engine } from 'pagewise';
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { LabView } from '../../shell/lab-view';
import { useSession } from '../../ui/context';
import { Button, Panel } from '../../ui/kit';
import { ProblemCard } from '../../ui/problem-card';
import { EngineGate } from '../shared/engine-gate';
import { t as shared } from '../shared/text';
import '../shared/lab.css';
import { FloorLab, type Stage } from './lab';
import { BatchPanel, ContextPanel, DevicePanel, StreamingPanel } from './panels';
import { t } from './text';

export default function FloorLabView(): JSX.Element {
  const session = useSession();
  const lab = useMemo(() => new FloorLab(), []);
  useEffect(() => {
    const stop = (): void => lab.job.stop();
    session.beforeLoad.add(stop);
    return () => {
      session.beforeLoad.delete(stop);
      lab.job.stop();
      void session.restore();
    };
  }, [lab, session]);
  return (
    <LabView lead={t('lead')}>
      <EngineGate why={t('why')}>{(engine) => <Lab lab={lab} engine={engine} />}</EngineGate>
    </LabView>
  );
}

function Lab({ lab, engine }: { lab: FloorLab; engine: Engine }): JSX.Element {
  const session = useSession();
  const isBusy = lab.job.busy.value;
  const problem = lab.job.problem.value;
  const stage = stageName(lab.stage.value);
  const { kv } = engine.info;
  const other = kv === 'f16' ? 'f32' : 'f16';
  return (
    <>
      <Panel title={t('measure')} lead={stage ? t('step', { ...lab.step.value, stage }) : t('measureLead')}>
        <div class="actions">
          {isBusy ? (
            <Button icon="stop" onClick={() => lab.job.stop()}>
              {shared('stop')}
            </Button>
          ) : (
            <>
              <Button kind="primary" onClick={() => void lab.run(engine)}>
                {t('measureButton', { kv })}
              </Button>
              <Button onClick={() => void session.loadFor({ kvFormat: other })}>{t('loadWith', { kv: other })}</Button>
            </>
          )}
        </div>
      </Panel>
      {problem && <ProblemCard problem={problem} onRetry={() => void lab.run(engine)} />}
      <DevicePanel lab={lab} engine={engine} />
      <ContextPanel lab={lab} engine={engine} />
      <BatchPanel lab={lab} engine={engine} />
      <StreamingPanel lab={lab} />
    </>
  );
}

function stageName(stage: Stage | null): string | null {
  switch (stage) {
    case 'bandwidth':
      return t('stageBandwidth');
    case 'contexts':
      return t('stageContexts');
    case 'batches':
      return t('stageBatches');
    case 'streaming':
      return t('stageStreaming');
    case null:
      return null;
  }
}
