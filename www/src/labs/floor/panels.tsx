/** What the latency-floor lab shows of its measurements. */
import type { Engine } from 'pagewise';
import type { JSX } from 'preact';
import { formatRate } from '../../i18n/core';
import { formatBytes, formatCount, formatFixed, formatMs, formatPercent } from '../../i18n/format';
import { Panel, Readout, Readouts } from '../../ui/kit';
import { BarPlot, LinePlot } from '../shared/plot';
import type { BarData, PlotData, PlotSeries } from '../shared/plot-data';
import type { FloorLab, Point } from './lab';
import { contextsFor } from './measure';
import { FLOOR_FORMATS, type FloorFormat, type FloorInput, floorOf, kvBytesIn } from './model';
import { t } from './text';

interface PanelProps {
  readonly lab: FloorLab;
  readonly engine: Engine;
}

/** The floor's input for the loaded model, at a context and a batch. */
function inputOf({ engine }: PanelProps, bytesPerS: number, contextTokens: number, batch: number): FloorInput {
  const { stepWeightsBytes: weightsBytes, kvBytesPerToken } = engine.info.memory;
  return { weightsBytes, kvBytesPerToken, contextTokens, batch, bytesPerS };
}

/** Points of the loaded format. */
const pointsOf = ({ lab, engine }: PanelProps): Point[] => lab.points.value.filter(({ kv }) => kv === engine.info.kv);

/** Bandwidth, bytes, floor and measured time, at the shortest context. */
export function DevicePanel(props: PanelProps): JSX.Element | null {
  const bytesPerS = props.lab.bytesPerS.value;
  const { memory, kv, adapter, tuning } = props.engine.info;
  const first = pointsOf(props).find(({ batch }) => batch === 1);
  const context = first?.contextTokens ?? 64;
  const kvBytes = context * memory.kvBytesPerToken;
  const floor = bytesPerS === null ? null : floorOf(inputOf(props, bytesPerS, context, 1));
  return (
    <Panel title={t('device')} lead={adapter.isSoftware ? t('softwareLead') : t('deviceLead')}>
      <Readouts>
        <Readout label={t('weights')} value={formatBytes(memory.stepWeightsBytes)} note={t('weightsNote')} />
        <Readout label={t('kv')} value={formatBytes(kvBytes)} note={t('kvNote', { context, kv })} />
        <Readout
          label={t('bandwidth')}
          value={bytesPerS === null ? '–' : `${formatFixed(bytesPerS / 1e9, 1)} GB/s`}
          note={t('bandwidthNote')}
        />
        <Readout
          label={t('floor')}
          value={floor ? formatMs(floor.tokenMs) : '–'}
          {...(floor ? { note: t('floorNote', { rate: formatRate(floor.tokensPerS) }) } : {})}
        />
        <Readout
          label={t('measured')}
          value={first ? formatMs(first.ms) : '–'}
          {...(first && floor ? { note: t('measuredNote', { share: formatPercent(floor.tokenMs / first.ms) }) } : {})}
        />
      </Readouts>
      <p class="help">
        {t('kernels', { name: tuning.fewRows || t('kernelsTable'), source: sourceName(tuning.source) })}
      </p>
    </Panel>
  );
}

function sourceName(source: Engine['info']['tuning']['source']): string {
  if (source === 'measured') return t('tuningMeasured');
  return source === 'remembered' ? t('tuningRemembered') : t('tuningTable');
}

const COLOURS: Readonly<Record<FloorFormat, string>> = { f32: '--preempted', f16: '--computed', q8_0: '--reused' };

/** How floor and measurement move with the context. */
export function ContextPanel(props: PanelProps): JSX.Element | null {
  const bytesPerS = props.lab.bytesPerS.value;
  const { info } = props.engine;
  const contexts = contextsFor(info.contextLength, info.adapter.isSoftware);
  const floors = (bytesPerS === null ? [] : FLOOR_FORMATS).map((format): PlotSeries => {
    const kvBytesPerToken = kvBytesIn(format, info.memory);
    const at = (contextTokens: number): number =>
      floorOf({ ...inputOf(props, bytesPerS ?? 0, contextTokens, 1), kvBytesPerToken }).tokenMs;
    return { label: t('floorOf', { kv: format }), colour: COLOURS[format], look: 'dashed', values: contexts.map(at) };
  });
  const measured = (['f32', 'f16'] as const).flatMap((kv): PlotSeries[] => {
    const points = props.lab.points.value.filter((point) => point.kv === kv && point.batch === 1);
    const values = contexts.map((context) => points.find(({ contextTokens }) => contextTokens === context)?.ms ?? null);
    return points.length > 0 ? [{ label: t('measuredOf', { kv }), colour: COLOURS[kv], look: 'points', values }] : [];
  });
  const data: PlotData = { x: contexts, series: [...floors, ...measured] };
  if (data.series.length === 0) return null;
  return (
    <Panel title={t('context')} lead={t('contextLead')}>
      <LinePlot
        label={t('contextPlot')}
        data={data}
        xLabel={t('contextTokens')}
        yLabel={t('perToken')}
        formatX={formatCount}
        formatY={formatMs}
      />
    </Panel>
  );
}

/** How both move with the number of answers in a step. */
export function BatchPanel(props: PanelProps): JSX.Element | null {
  const bytesPerS = props.lab.bytesPerS.value;
  const points = pointsOf(props);
  const context = points[0]?.contextTokens;
  if (context === undefined) return null;
  const batches = points.filter(({ contextTokens }) => contextTokens === context);
  if (batches.length < 2) return null;
  const measured = { label: t('measured'), colour: '--computed', values: batches.map(({ ms }) => ms) };
  const floors = (known: number): number[] =>
    batches.map(({ batch }) => floorOf(inputOf(props, known, context, batch)).tokenMs);
  const data: BarData = {
    groups: batches.map(({ batch }) => t('answers', { count: batch })),
    series: [
      ...(bytesPerS === null ? [] : [{ label: t('floor'), colour: '--reused', values: floors(bytesPerS) }]),
      measured,
    ],
  };
  return (
    <Panel title={t('batch')} lead={t('batchLead')}>
      <BarPlot label={t('batchPlot')} data={data} yLabel={t('perToken')} formatY={formatMs} />
      <Readouts label={t('throughput')}>
        {batches.map(({ batch, ms }) => (
          <Readout key={batch} label={t('answers', { count: batch })} value={formatRate((1000 * batch) / ms)} />
        ))}
      </Readouts>
      <p class="help">{batchText(batches)}</p>
    </Panel>
  );
}

/** All answers together have to be this much faster before the text says that it pays. */
const PAYS = 1.2;

/** What was measured, in words: the lead says what should be, and a busy or software adapter may show otherwise. */
export function batchText(batches: readonly Point[]): string {
  const [one, most] = [batches[0], batches.at(-1)];
  if (!one || !most) return '';
  const factor = (most.batch * one.ms) / (most.ms * one.batch);
  const count = most.batch;
  return factor >= PAYS
    ? t('batchPays', { count, factor: formatFixed(factor, 1) })
    : t('batchNot', { count, factor: formatFixed(factor, 1) });
}

/** What streaming changes. */
export function StreamingPanel({ lab }: { lab: FloorLab }): JSX.Element | null {
  const seen = lab.seen.value;
  if (!seen) return null;
  const { streamed, whole } = seen;
  const data: BarData = {
    groups: [t('streamed'), t('whole')],
    series: [
      { label: t('firstWords'), colour: '--reused', values: [streamed.firstMs, whole.firstMs] },
      { label: t('allWords'), colour: '--computed', values: [streamed.allMs, whole.allMs] },
    ],
  };
  return (
    <Panel title={t('streaming')} lead={t('streamingLead')}>
      <BarPlot label={t('streamingPlot')} data={data} yLabel={t('waited')} formatY={formatMs} height={190} />
    </Panel>
  );
}
