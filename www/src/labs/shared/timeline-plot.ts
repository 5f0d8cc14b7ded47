/** A timeline as uPlot draws it: time on one axis, a row a request on the other, a series for each kind of span. */
import uPlot from 'uplot';
import { formatMs } from '../../i18n/format';
import { colourOf } from './colour';
import { axis, type Draw } from './plot';
import type { Span, TimelineData } from './plot-data';

/** Of a row's height. */
const BAR = 0.72;

/** The options and data of a timeline. */
export function timelineOptions(element: HTMLElement, { rows, kinds, endMs }: TimelineData): ReturnType<Draw> {
  // Every row is a point of every series, so that the scales know them; what is drawn are the spans.
  const x = [0, endMs];
  const name = (at: number): string => rows[Math.round(at)] ?? '';
  return {
    data: [x, ...kinds.map(() => [0, rows.length - 1])] as uPlot.AlignedData,
    options: {
      axes: [
        axis(element, { values: (_, splits) => splits.map(formatMs), space: 70 }),
        axis(element, {
          splits: () => [...rows.keys()],
          values: (_, splits) => splits.map(name),
          grid: { show: false },
          size: 44,
        }),
      ],
      scales: {
        x: { time: false },
        // The first request is at the top.
        y: { dir: -1, range: [-0.5, rows.length - 0.5] },
      },
      legend: { show: true, live: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      series: [
        {},
        ...kinds.map(({ label, colour, spans }) => {
          const fill = colourOf(element, colour);
          return { label, stroke: fill, fill, width: 0, points: { show: false }, paths: spanPaths(spans) };
        }),
      ],
    },
  };
}

function spanPaths(spans: readonly Span[]): uPlot.Series.PathBuilder {
  return (plot) => {
    const fill = new Path2D();
    const top = (row: number): number => plot.valToPos(row, 'y', true);
    const height = Math.abs(top(1) - top(0)) * BAR;
    for (const { row, startMs, endMs } of spans) {
      const start = plot.valToPos(startMs, 'x', true);
      // What is too short to be seen is a hairline.
      const width = Math.max(1, plot.valToPos(endMs, 'x', true) - start);
      fill.rect(start, top(row) - height / 2, width, height);
    }
    return { stroke: null, fill, clip: null, band: null, gaps: null, flags: uPlot.paths ? 1 : 0 } as never;
  };
}
