/** Steps as rows: when each request waited, was prefilled, decoded or had to give way. Live and simulated steps alike. */
import type { Span } from '../shared/plot-data';

/** A request, as far as the rows need it. */
export interface LaneRequest {
  readonly atMs: number;
  readonly endMs: number;
}

/** A step, with requests by their index. */
export interface LaneStep {
  readonly startMs: number;
  readonly endMs: number;
  readonly parts: readonly { readonly request: number; readonly start: number; readonly numPrompt: number }[];
  readonly preempted: readonly number[];
}

export const SPAN_KINDS = ['waiting', 'prefill', 'decode', 'preempted'] as const;
export type SpanKind = (typeof SPAN_KINDS)[number];

/** The spans of each kind. */
export type Lanes = Readonly<Record<SpanKind, readonly Span[]>>;

/** A gap that is shorter belongs to the step before: it is the time between two steps. */
const SLACK_MS = 0.5;

/** Rows for the first `numRows` requests. */
export function lanesOf(requests: readonly LaneRequest[], steps: readonly LaneStep[], numRows: number): Lanes {
  const lanes: Record<SpanKind, Span[]> = { waiting: [], prefill: [], decode: [], preempted: [] };
  const rows = requests.slice(0, numRows);
  const reached = rows.map(({ atMs }) => atMs);
  const isPreempted = rows.map(() => false);
  const idle = (row: number, until: number): void => {
    const from = reached[row] ?? 0;
    if (until - from > SLACK_MS)
      append(lanes[isPreempted[row] ? 'preempted' : 'waiting'], { row, startMs: from, endMs: until });
    reached[row] = Math.max(from, until);
  };
  for (const { startMs, endMs, parts, preempted } of steps) {
    for (const row of preempted) {
      if (row >= rows.length) continue;
      idle(row, startMs);
      isPreempted[row] = true;
    }
    for (const { request: row, start, numPrompt } of parts) {
      if (row >= rows.length) continue;
      idle(row, startMs);
      isPreempted[row] = false;
      // The first token of the answer is computed with the last of the prompt.
      append(lanes[start < numPrompt ? 'prefill' : 'decode'], { row, startMs: reached[row] ?? startMs, endMs });
      reached[row] = endMs;
    }
  }
  return lanes;
}

/** Adds a span, or makes the last one of the row longer. */
function append(spans: Span[], span: Span): void {
  let index = spans.length - 1;
  while (index >= 0 && spans[index]?.row !== span.row) index -= 1;
  const last = spans[index];
  if (last && span.startMs - last.endMs <= SLACK_MS) spans[index] = { ...last, endMs: span.endMs };
  else spans.push(span);
}
