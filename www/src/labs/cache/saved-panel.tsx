/** The second tier: blocks outside of the GPU's memory, and their way there and back. */
import type { JSX } from 'preact';
import { formatBytes, formatMs } from '../../i18n/format';
import { Button, Panel, Readout, Readouts } from '../../ui/kit';
import type { CacheLab } from './lab';
import { t } from './text';

/** Blocks that are drawn, at most. */
const MOST_DRAWN = 256;

export function SavedPanel({ lab }: { lab: CacheLab }): JSX.Element | null {
  const run = lab.run.value;
  const saved = lab.saved.value;
  const isBusy = lab.job.busy.value;
  const first = run?.requests[0]?.measured;
  if (!first) return null;
  return (
    <Panel title={t('tiers')} lead={t('tiersLead')}>
      <div class="actions">
        <Button icon="download" disabled={isBusy} onClick={() => void lab.save()}>
          {t('save')}
        </Button>
        <Button icon="upload" disabled={isBusy || saved === null} onClick={() => void lab.restore()}>
          {t('restore')}
        </Button>
      </div>
      {saved && (
        <>
          <div class="pool" role="img" aria-label={t('savedBlocks', { count: saved.numBlocks })}>
            {[...Array(Math.min(MOST_DRAWN, saved.numBlocks)).keys()].map((index) => (
              <span key={index} class="block block-saved" />
            ))}
          </div>
          <Readouts>
            <Readout
              label={t('savedSize')}
              value={formatBytes(saved.blob.size)}
              note={t('savedBlocks', { count: saved.numBlocks })}
            />
            <Readout label={t('saveTime')} value={formatMs(saved.saveMs)} />
            <Readout label={t('restoreTime')} value={saved.restoreMs === null ? '–' : formatMs(saved.restoreMs)} />
            <Readout label={t('computeTime')} value={formatMs(first.ttftMs)} note={t('computeNote')} />
          </Readouts>
        </>
      )}
    </Panel>
  );
}
