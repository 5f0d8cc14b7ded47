/** The block pool, drawn live. */
import type { JSX } from 'preact';
import { formatBytes } from '../../i18n/format';
import { Button, Panel, Readout, Readouts } from '../../ui/kit';
import type { CacheLab } from './lab';
import { letter } from './names';
import { type PoolCell, type PoolSummary, summarise } from './pool';
import { t } from './text';

export function PoolPanel({ lab }: { lab: CacheLab }): JSX.Element | null {
  const state = lab.state.value;
  if (!state) return null;
  const { memory } = lab.engine.info;
  const summary = summarise(state.cells);
  return (
    <Panel
      title={t('pool')}
      lead={t('poolLead')}
      actions={
        <Button kind="quiet" icon="trash" disabled={lab.job.busy.value} onClick={() => void lab.clear()}>
          {t('clear')}
        </Button>
      }
    >
      <div class="pool" role="img" aria-label={labelOf(summary)}>
        {state.cells.map((cell) => (
          <Cell key={`${cell.group} ${cell.block}`} cell={cell} />
        ))}
      </div>
      <ul class="key">
        <li class="block-held">{t('held')}</li>
        <li class="block-shared">{t('shared')}</li>
        <li class="block-cached">{t('cached')}</li>
        <li class="block-foreign">{t('foreign')}</li>
        <li class="block-free">{t('free')}</li>
        <li class="block-pinned">{t('pinned')}</li>
      </ul>
      <p class="help">{t('tier', { bytes: formatBytes(memory.kvBytes), kv: memory.kv })}</p>
      <Readouts label={t('blocksLabel')}>
        <Readout label={t('free')} value={String(summary.free)} />
        <Readout label={t('cached')} value={String(summary.cached)} />
        <Readout label={t('held')} value={String(summary.held)} />
        <Readout label={t('shared')} value={String(summary.shared)} />
        <Readout label={t('evicted')} value={String(state.stats.numEvicted)} />
        <Readout label={t('expired')} value={String(state.stats.numExpired)} />
      </Readouts>
    </Panel>
  );
}

function labelOf({ free, held, shared, cached, total }: PoolSummary): string {
  return t('poolLabel', { free, held, shared, cached, total });
}

function Cell({ cell }: { cell: PoolCell }): JSX.Element {
  const { state, owners, isForeign, isPinned, block } = cell;
  const look = state === 'cached' && isForeign ? 'foreign' : state;
  return (
    <span class={`block block-${look} ${isPinned ? 'pinned' : ''}`} data-block={block} data-state={state}>
      {owners.map(letter).join('')}
    </span>
  );
}
