/** One mode's timeline: a row a request. */
import type { JSX } from 'preact';
import { formatMs } from '../../i18n/format';
import { Panel } from '../../ui/kit';
import { Table, Timeline } from '../shared/plot';
import type { TimelineData } from '../shared/plot-data';
import { modeName } from './figures-panel';
import type { ModeResult } from './lab';
import { type Lanes, lanesOf, SPAN_KINDS, type SpanKind } from './lanes';
import type { ModeName } from './modes';
import { t } from './text';
import { TRACED_REQUESTS } from './workload';

const COLOURS: Readonly<Record<SpanKind, string>> = {
  waiting: '--line',
  prefill: '--computed',
  decode: '--generated',
  preempted: '--preempted',
};

function kindName(kind: SpanKind): string {
  if (kind === 'waiting') return t('waiting');
  if (kind === 'prefill') return t('prefill');
  return kind === 'decode' ? t('decode') : t('preempted');
}

export function TimelinePanel({ mode, result }: { mode: ModeName; result: ModeResult }): JSX.Element {
  const requests = result.requests.slice(0, TRACED_REQUESTS);
  const lanes = lanesOf(requests, result.steps, TRACED_REQUESTS);
  const data: TimelineData = {
    rows: requests.map((_, index) => String(index + 1)),
    kinds: SPAN_KINDS.map((kind) => ({ label: kindName(kind), colour: COLOURS[kind], spans: lanes[kind] })),
    endMs: Math.max(1, ...requests.map(({ endMs }) => endMs)),
  };
  const lead = mode === 'static' ? t('staticLead') : mode === 'continuous' ? t('continuousLead') : t('chunkedLead');
  return (
    <Panel title={modeName(mode)} lead={lead}>
      <Timeline
        label={t('timeline', { mode: modeName(mode), count: requests.length })}
        data={data}
        table={<Table heads={[t('request'), ...SPAN_KINDS.map(kindName)]} rows={rowsOf(lanes, requests.length)} />}
      />
    </Panel>
  );
}

/** How long each request was in each state. */
function rowsOf(lanes: Lanes, numRows: number): string[][] {
  return Array.from({ length: numRows }, (_, row) => {
    const sum = (kind: SpanKind): number =>
      lanes[kind].reduce((ms, span) => (span.row === row ? ms + span.endMs - span.startMs : ms), 0);
    return [String(row + 1), ...SPAN_KINDS.map((kind) => formatMs(sum(kind)))];
  });
}
