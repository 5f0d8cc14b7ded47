/** The prepared experiments: one click each. */
import type { JSX } from 'preact';
import { Panel, Slider } from '../../ui/kit';
import { EXPERIMENTS, type ExperimentId } from './experiments';
import type { CacheLab } from './lab';
import { describe } from './names';
import { t } from './text';

/** `onStart` is told which experiment is wanted. */
export function ExperimentList({ lab, onStart }: { lab: CacheLab; onStart: (id: ExperimentId) => void }): JSX.Element {
  const { tokens } = lab.settings.value;
  const isBusy = lab.job.busy.value;
  const current = lab.run.value?.id;
  const max = Math.floor(lab.limit() / 32) * 32;
  return (
    <Panel title={t('experiments')} lead={t('experimentsLead')}>
      <ul class="experiments">
        {EXPERIMENTS.map((id) => (
          <li key={id}>
            <button
              type="button"
              class="experiment"
              disabled={isBusy}
              aria-pressed={current === id}
              onClick={() => onStart(id)}
            >
              {describe(id).name}
            </button>
          </li>
        ))}
      </ul>
      {lab.poolFor('crowded') !== null && (
        <p class="help">{t('smallPool', { name: t('crowded'), count: lab.poolFor('crowded') ?? 0 })}</p>
      )}
      <div class="experiment-size">
        <Slider
          label={t('size')}
          help={t('sizeHelp')}
          min={64}
          max={Math.max(64, max)}
          step={32}
          value={Math.min(tokens, max)}
          shown={t('tokens', { count: Math.min(tokens, max) })}
          disabled={isBusy}
          onChange={(value) => void lab.set({ tokens: value })}
        />
      </div>
    </Panel>
  );
}
