/** How far loading a model is: bytes, pace, time left. */
import type { JSX } from 'preact';
import { formatBytes, formatSeconds } from '../format';
import type { LoadPhase } from '../state/engine';
import { type ModelState, modelName } from '../state/loader';
import { useApp } from './context';

const PHASES: Readonly<Record<LoadPhase, string>> = {
  download: 'Downloading',
  header: 'Reading the file’s header',
  weights: 'Bringing the weights to the GPU',
  compile: 'Preparing and checking the GPU’s programs',
  ready: 'Ready',
};

export function LoadingCard({ state }: { state: Extract<ModelState, { kind: 'loading' }> }): JSX.Element {
  const app = useApp();
  const { phase, loadedBytes, totalBytes, pace } = state.progress;
  const isCounted = phase === 'weights' && totalBytes !== null;
  const left = pace.secondsLeft === null ? 'estimating…' : `${formatSeconds(pace.secondsLeft)} left`;
  return (
    <section class="card loading" aria-label="Loading the model">
      <div class="loading-head">
        <h2>Loading {modelName(state)}</h2>
        <button type="button" class="button quiet" onClick={() => app.cancelLoad()}>
          Cancel
        </button>
      </div>
      {isCounted ? (
        <progress aria-label="Loading" max={totalBytes} value={loadedBytes} />
      ) : (
        <progress aria-label="Loading" />
      )}
      <div class="loading-foot">
        <span>{isCounted ? `${formatBytes(loadedBytes)} of ${formatBytes(totalBytes)}` : PHASES[phase]}</span>
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
