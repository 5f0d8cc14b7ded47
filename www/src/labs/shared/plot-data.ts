/** What is plotted, apart from how: the same data make a plot and its table. */

/** One line, or the bars of one colour. */
export interface PlotSeries {
  readonly label: string;
  /** A token of tokens.css. */
  readonly colour: string;
  /** One for each x; null where there is none. */
  readonly values: readonly (number | null)[];
  readonly look: 'line' | 'dashed' | 'points' | 'bars';
}

/** A plot over numbers. */
export interface PlotData {
  readonly x: readonly number[];
  readonly series: readonly PlotSeries[];
}

/** Named groups of bars, one bar a series. */
export interface BarData {
  /** Whether a group has one bar, of whichever series has a value: they then need no places of their own. */
  readonly isSingle?: boolean;
  readonly groups: readonly string[];
  readonly series: readonly Omit<PlotSeries, 'look'>[];
}

/** Room between two groups, of the distance between their middles. */
const GAP = 0.3;

/** Bars as a plot: groups are at 0, 1, 2…, and each series' bars stand beside the others'. */
export function barsToPlot({ groups, series, isSingle = false }: BarData): PlotData {
  if (isSingle) return { x: [...groups.keys()], series: series.map((one) => ({ ...one, look: 'bars' })) };
  const width = (1 - GAP) / series.length;
  const offset = (index: number): number => (index - (series.length - 1) / 2) * width;
  const x: number[] = [];
  const owners: { series: number; group: number }[] = [];
  for (const group of groups.keys()) {
    for (const index of series.keys()) {
      x.push(group + offset(index));
      owners.push({ series: index, group });
    }
  }
  return {
    x,
    series: series.map((one, index) => ({
      ...one,
      look: 'bars',
      values: owners.map((owner) => (owner.series === index ? (one.values[owner.group] ?? null) : null)),
    })),
  };
}

/** Rectangles in time, one row a request. */
export interface TimelineData {
  /** The rows' names, from the top. */
  readonly rows: readonly string[];
  readonly kinds: readonly { readonly label: string; readonly colour: string; readonly spans: readonly Span[] }[];
  readonly endMs: number;
}

/** One rectangle of a timeline. */
export interface Span {
  readonly row: number;
  readonly startMs: number;
  readonly endMs: number;
}
