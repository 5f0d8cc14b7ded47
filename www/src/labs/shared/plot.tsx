/** A plot by uPlot with a table of the same numbers, for whoever cannot see it or wants them exactly. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './plot.css';
import { lang } from '../../i18n';
import { colourOf, onSchemeChange } from './colour';
import type { BarData, PlotData, PlotSeries, TimelineData } from './plot-data';
import { barsToPlot } from './plot-data';
import { t } from './text';
import { timelineOptions } from './timeline-plot';

/** Lays out a uPlot in an element: its options without the size, and its data. */
export type Draw = (element: HTMLElement) => {
  options: Omit<uPlot.Options, 'width' | 'height'>;
  data: uPlot.AlignedData;
};

interface FrameProps {
  /** What is shown, as a sentence: the plot's name for screen readers. */
  readonly label: string;
  readonly height?: number;
  /** Drawn anew when it is another. */
  readonly data: unknown;
  readonly draw: Draw;
  readonly table: JSX.Element;
}

const FONT_SIZE = 12;

function PlotFrame({ label, height = 220, data, draw, table }: FrameProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const language = lang.value;
  useEffect(() => {
    const element = place.current;
    // Without a canvas, in tests, the table has to do.
    if (!element || typeof Path2D === 'undefined') return;
    let plot: uPlot | null = null;
    const width = (): number => Math.max(160, element.clientWidth);
    const make = (): void => {
      plot?.destroy();
      const { options, data } = draw(element);
      plot = new uPlot({ ...options, width: width(), height }, data, element);
    };
    make();
    const resized = new ResizeObserver(() => plot?.setSize({ width: width(), height }));
    resized.observe(element);
    const endScheme = onSchemeChange(make);
    return () => {
      resized.disconnect();
      endScheme();
      plot?.destroy();
    };
  }, [data, height, language]);
  return (
    <figure class="plot">
      <div ref={place} role="img" aria-label={label} />
      <details>
        <summary>{t('asTable')}</summary>
        <section class="plot-table" aria-label={label} tabIndex={0}>
          {table}
        </section>
      </details>
    </figure>
  );
}

/** How axes and legend look: the page's font and colours. */
export function axis(element: HTMLElement, more: uPlot.Axis): uPlot.Axis {
  const line = colourOf(element, '--line');
  const font = `${FONT_SIZE}px ${getComputedStyle(element).fontFamily}`;
  return {
    stroke: colourOf(element, '--ink-soft'),
    font,
    labelFont: font,
    labelSize: 18,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 4 },
    ...more,
  };
}

export interface LinePlotProps {
  readonly label: string;
  readonly data: PlotData;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly formatX: (x: number) => string;
  readonly formatY: (y: number) => string;
  readonly height?: number;
}

/** Lines and points over numbers. */
export function LinePlot({ label, data, height, ...axes }: LinePlotProps): JSX.Element {
  const { x, series } = data;
  const draw: Draw = (element) => ({
    data: [[...x], ...series.map(({ values }) => [...values])] as uPlot.AlignedData,
    options: {
      legend: legendOf(element, series),
      hooks: { ready: [(plot) => markLegend(plot, series)] },
      axes: [
        axis(element, { label: axes.xLabel, values: (_, splits) => splits.map(axes.formatX) }),
        axis(element, { label: axes.yLabel, values: (_, splits) => splits.map(axes.formatY), size: 64 }),
      ],
      scales: { x: { time: false }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
      series: [
        { label: axes.xLabel, value: (_, value) => (value === null ? '–' : axes.formatX(value)) },
        ...series.map((one) => seriesOptions(element, one, axes.formatY)),
      ],
    },
  });
  const heads = [axes.xLabel, ...series.map((one) => one.label)];
  const rows = x.map((at, index) => [
    axes.formatX(at),
    ...series.map(({ values }) => cell(values[index], axes.formatY)),
  ]);
  return (
    <PlotFrame
      label={label}
      data={data}
      draw={draw}
      table={<Table heads={heads} rows={rows} />}
      {...(height ? { height } : {})}
    />
  );
}

/** Marks as the series are drawn: of two in the same colour one may be a dashed line, the other dots. */
function legendOf(element: HTMLElement, series: readonly PlotSeries[]): uPlot.Legend {
  const at = (index: number): PlotSeries | undefined => series[index - 1];
  return {
    live: false,
    markers: {
      width: 1,
      dash: (_, index) => (at(index)?.look === 'dashed' ? 'dashed' : 'solid'),
      fill: (_, index) => colourOf(element, at(index)?.colour ?? '--line'),
    },
  };
}

/** Says in the legend's rows how each is drawn; the style sheet shapes the marks. */
function markLegend(plot: uPlot, series: readonly PlotSeries[]): void {
  const rows = plot.root.querySelectorAll<HTMLElement>('.u-legend .u-series');
  for (const [index, row] of [...rows].entries()) row.dataset.look = series[index]?.look ?? '';
}

export interface BarPlotProps {
  readonly label: string;
  readonly data: BarData;
  readonly yLabel: string;
  readonly formatY: (y: number) => string;
  readonly height?: number;
}

/** Groups of bars. */
export function BarPlot({ label, data, yLabel, formatY, height }: BarPlotProps): JSX.Element {
  const { groups, series } = data;
  const draw: Draw = (element) => {
    const { x, series: bars } = barsToPlot(data);
    const name = (at: number): string => groups[Math.round(at)] ?? '';
    return {
      data: [[...x], ...bars.map(({ values }) => [...values])] as uPlot.AlignedData,
      options: {
        legend: { live: false },
        axes: [
          axis(element, {
            splits: () => [...groups.keys()],
            values: (_, splits) => splits.map(name),
            grid: { show: false },
          }),
          axis(element, { label: yLabel, values: (_, splits) => splits.map(formatY), size: 64 }),
        ],
        scales: {
          x: { time: false, range: [-0.5, groups.length - 0.5] },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        series: [
          { label: '', value: (_, value) => (value === null ? '–' : name(value)) },
          ...bars.map((one) => seriesOptions(element, one, formatY)),
        ],
      },
    };
  };
  const rows = groups.map((group, index) => [group, ...series.map(({ values }) => cell(values[index], formatY))]);
  const table = <Table heads={['', ...series.map((one) => one.label)]} rows={rows} />;
  return <PlotFrame label={label} data={data} draw={draw} table={table} {...(height ? { height } : {})} />;
}

/** A row a request, time to the end. */
export function Timeline({
  label,
  data,
  table,
}: {
  label: string;
  data: TimelineData;
  table: JSX.Element;
}): JSX.Element {
  const draw: Draw = (element) => timelineOptions(element, data);
  return <PlotFrame label={label} data={data} height={80 + 18 * data.rows.length} draw={draw} table={table} />;
}

function seriesOptions(element: HTMLElement, one: PlotSeries, format: (y: number) => string): uPlot.Series {
  const stroke = colourOf(element, one.colour);
  // Whole pixels would bend straight lines.
  const pxAlign = one.look === 'bars';
  const base = { label: one.label, stroke, pxAlign, value: (_: uPlot, value: number | null) => cell(value, format) };
  const { bars } = uPlot.paths;
  if (one.look === 'bars' && bars)
    return { ...base, fill: stroke, width: 0, paths: bars({ size: [0.92, 64] }), points: { show: false } };
  if (one.look === 'points') return { ...base, paths: () => null, points: { show: true, size: 8, fill: stroke } };
  const dash = one.look === 'dashed' ? { dash: [6, 4] } : {};
  return { ...base, width: 2, spanGaps: true, points: { show: false }, ...dash };
}

const cell = (value: number | null | undefined, format: (y: number) => string): string =>
  value === null || value === undefined ? '–' : format(value);

/** A table of texts; the first column names the rows. */
export function Table({
  heads,
  rows,
}: {
  heads: readonly string[];
  rows: readonly (readonly string[])[];
}): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          {heads.map((head, index) =>
            head === '' ? (
              <td key={index} />
            ) : (
              <th key={index} scope="col">
                {head}
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((text, column) =>
              column === 0 ? (
                <th key={column} scope="row">
                  {text}
                </th>
              ) : (
                <td key={column}>{text}</td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
