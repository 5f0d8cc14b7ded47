/** The batching lab. */
import type { JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { formatCount, formatPercent } from '../../i18n/format';
import { LabView } from '../../shell/lab-view';
import { useSession } from '../../ui/context';
import { Button, Choices, Panel, Slider } from '../../ui/kit';
import { LoadingCard } from '../../ui/loading-card';
import { ProblemCard } from '../../ui/problem-card';
import { t as shared } from '../shared/text';
import '../shared/lab.css';
import './batching.css';
import { FiguresPanel } from './figures-panel';
import { BatchingLab } from './lab';
import { MODES } from './modes';
import { t } from './text';
import { TimelinePanel } from './timeline-panel';

export default function BatchingLabView(): JSX.Element {
  const session = useSession();
  const lab = useMemo(() => new BatchingLab(session), [session]);
  useEffect(() => {
    void lab.simulate();
    return () => {
      lab.job.stop();
      void session.restore();
    };
  }, [lab, session]);
  const state = session.loader.state.value;
  const problem = lab.job.problem.value;
  const isLive = lab.input.value.place === 'live';
  // A simulated server says nothing of this device.
  const isOfPlace = (lab.shownInput.value.place === 'live') === isLive;
  const results = isOfPlace ? lab.results.value : {};
  return (
    <LabView lead={t('lead')}>
      <Controls lab={lab} />
      {isLive && state.kind === 'loading' && <LoadingCard state={state} />}
      {isLive && state.kind === 'failed' && <ProblemCard problem={state.problem} onRetry={() => void lab.runLive()} />}
      {problem && <ProblemCard problem={problem} onRetry={() => void (isLive ? lab.runLive() : lab.simulate())} />}
      {isLive && session.engine.value?.info.adapter.isSoftware && <p class="warning">{t('liveSoftware')}</p>}
      {isLive && !isOfPlace && <p class="help">{t('liveInvite', { button: t('runLive') })}</p>}
      <FiguresPanel results={results} />
      {MODES.map((mode) => {
        const result = results[mode];
        return result && <TimelinePanel key={mode} mode={mode} result={result} />;
      })}
    </LabView>
  );
}

function Controls({ lab }: { lab: BatchingLab }): JSX.Element {
  const input = lab.input.value;
  const { place, perS, longShare, slots, chunkTokens, numRequests } = input;
  const isLive = place === 'live';
  const isBusy = lab.job.busy.value;
  const limits = { server: [64, 40], integrated: [16, 8], live: [8, 20] } as const;
  const [maxSlots, maxPerS] = limits[place];
  return (
    <Panel title={t('workload')} lead={isLive ? t('liveLead') : t('simulatedLead')}>
      <div class="controls batching-controls">
        <Choices
          label={t('place')}
          options={[
            { value: 'server', label: t('server') },
            { value: 'integrated', label: t('integrated') },
            { value: 'live', label: t('live') },
          ]}
          value={place}
          onChange={(value) => lab.set({ place: value })}
        />
        <Slider
          label={t('rate')}
          min={0}
          max={maxPerS}
          step={place === 'integrated' ? 0.5 : 1}
          value={perS}
          shown={perS === 0 ? t('atOnce') : t('perS', { rate: perS })}
          onChange={(value) => lab.set({ perS: value })}
        />
        <Slider
          label={t('requests')}
          min={4}
          max={isLive ? 24 : 400}
          step={isLive ? 1 : 4}
          value={numRequests}
          shown={formatCount(numRequests)}
          onChange={(value) => lab.set({ numRequests: value })}
        />
        <Slider
          label={t('mix')}
          min={0}
          max={1}
          step={0.05}
          value={longShare}
          shown={t('mixShown', { share: formatPercent(longShare) })}
          onChange={(value) => lab.set({ longShare: value })}
        />
        <Slider
          label={t('slots')}
          min={1}
          max={maxSlots}
          value={slots}
          shown={formatCount(slots)}
          onChange={(value) => lab.set({ slots: value })}
        />
        <Slider
          label={t('chunk')}
          min={4}
          max={11}
          value={Math.log2(chunkTokens)}
          shown={t('tokens', { count: chunkTokens })}
          onChange={(power) => lab.set({ chunkTokens: 2 ** power })}
        />
      </div>
      {isLive && (
        <div class="actions">
          {isBusy ? (
            <Button icon="stop" onClick={() => lab.job.stop()}>
              {shared('stop')}
            </Button>
          ) : (
            <Button kind="primary" onClick={() => void lab.runLive()}>
              {t('runLive')}
            </Button>
          )}
        </div>
      )}
    </Panel>
  );
}
