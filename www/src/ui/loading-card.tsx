/** How far loading a model is: bytes, pace, time left. */
import type { JSX } from 'preact';
import { t as core } from '../i18n/core';
import { formatBytes, formatSeconds } from '../i18n/format';
import type { LoadPhase } from '../state/engine';
import { type ModelState, modelName } from '../state/loader';
import { t } from '../state/settings-text';
import { useSession } from './context';
import { Button } from './kit';

const PHASES = {
  download: 'phaseDownload',
  header: 'phaseHeader',
  weights: 'phaseWeights',
  compile: 'phaseCompile',
  ready: 'phaseReady',
} as const satisfies Readonly<Record<LoadPhase, string>>;

export function LoadingCard({ state }: { state: Extract<ModelState, { kind: 'loading' }> }): JSX.Element {
  const session = useSession();
  const { phase, loadedBytes, totalBytes, pace } = state.progress;
  const isCounted = (phase === 'weights' || phase === 'download') && totalBytes !== null;
  const left = pace.secondsLeft === null ? t('estimating') : t('timeLeft', { time: formatSeconds(pace.secondsLeft) });
  return (
    <section class="card loading" aria-label={t('loadingModel')}>
      <div class="loading-head">
        <h2>{t('loadingName', { name: modelName(state) })}</h2>
        <Button kind="quiet" onClick={() => session.cancelLoad()}>
          {core('cancel')}
        </Button>
      </div>
      {isCounted ? (
        <progress aria-label={t('loading')} max={totalBytes} value={loadedBytes} />
      ) : (
        <progress aria-label={t('loading')} />
      )}
      <div class="loading-foot">
        <span>
          {isCounted
            ? t('bytesOf', { loaded: formatBytes(loadedBytes), total: formatBytes(totalBytes) })
            : t(PHASES[phase])}
        </span>
        {isCounted && (
          <span>
            {pace.bytesPerS !== null && `${formatBytes(pace.bytesPerS)}/s · `}
            {left}
          </span>
        )}
      </div>
    </section>
  );
}
