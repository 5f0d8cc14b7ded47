/** P50, P95 and P99 of all modes, side by side. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { formatMs, formatPercent, formatRateNumber } from '../../i18n/format';
import { Choices, Panel } from '../../ui/kit';
import { BarPlot, Table } from '../shared/plot';
import type { BarData } from '../shared/plot-data';
import type { Figures, Quantiles } from './figures';
import type { Results } from './lab';
import { MODES, type ModeName } from './modes';
import { t } from './text';

type Time = 'ttftMs' | 'interTokenMs' | 'endToEndMs';

const COLOURS: Readonly<Record<ModeName, string>> = {
  static: '--waiting',
  continuous: '--computed',
  chunked: '--reused',
};

export function modeName(mode: ModeName): string {
  return mode === 'static' ? t('static') : mode === 'continuous' ? t('continuous') : t('chunked');
}

export function FiguresPanel({ results }: { results: Results }): JSX.Element | null {
  const [time, setTime] = useState<Time>('ttftMs');
  const there = MODES.flatMap((mode) => {
    const figures = results[mode]?.figures;
    return figures ? [{ mode, figures }] : [];
  });
  if (there.length === 0) return null;
  const data: BarData = {
    groups: ['P50', 'P95', 'P99'],
    series: there.map(({ mode, figures }) => {
      const { p50, p95, p99 } = figures[time];
      return { label: modeName(mode), colour: COLOURS[mode], values: [p50, p95, p99] };
    }),
  };
  const names: Readonly<Record<Time, string>> = {
    ttftMs: t('ttft'),
    interTokenMs: t('interToken'),
    endToEndMs: t('endToEnd'),
  };
  return (
    <Panel title={t('figures')} lead={t('figuresLead')}>
      <section class="batching-table" aria-label={t('figuresLead')} tabIndex={0}>
        <Table
          heads={['', ...Object.values(names).map((what) => t('quantiles', { what })), t('throughput'), t('occupancy')]}
          rows={there.map(({ mode, figures }) => [modeName(mode), ...rowOf(figures)])}
        />
      </section>
      <Choices
        label={t('compare')}
        hideLabel
        options={(Object.keys(names) as Time[]).map((value) => ({ value, label: names[value] }))}
        value={time}
        onChange={setTime}
      />
      <BarPlot label={t('figuresPlot', { what: names[time] })} data={data} yLabel={names[time]} formatY={formatMs} />
    </Panel>
  );
}

function rowOf({ ttftMs, interTokenMs, endToEndMs, tokensPerS, occupancy }: Figures): string[] {
  const all = ({ p50, p95, p99 }: Quantiles): string => [p50, p95, p99].map(formatMs).join(' / ');
  const times = [ttftMs, interTokenMs, endToEndMs].map(all);
  return [...times, t('tokensPerS', { rate: formatRateNumber(tokensPerS) }), formatPercent(occupancy)];
}
