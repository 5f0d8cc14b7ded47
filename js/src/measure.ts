/**
 * Requests in the browser's own timeline: DevTools shows them in a track, a `PerformanceObserver` sees them.
 */

import { combine } from './choices.js';
import type { FinishedEvent } from './protocol.js';

/** What is on the timeline, and in which colour of DevTools' palette. */
const PHASES = {
  queue: 'secondary-light',
  prefill: 'primary-dark',
  decode: 'primary-light',
} as const;

/** `detail` of a measure. DevTools reads `devtools` (its performance extensibility API). */
interface Detail {
  /** The `id` of the response. */
  request: string;
  /** Index of the answer; only of `pagewise:decode`. */
  choice?: number;
  /** Tokens of the prompt; those of them that were computed; those generated. */
  tokens: number;
}

/**
 * Measures a complete request. A page that has replaced the timeline's functions by such that throw gets no measures; its
 * answers come all the same.
 */
export function tryToMeasure(...request: Parameters<typeof measureRequest>): void {
  try {
    measureRequest(...request);
  } catch (error) {
    console.warn('pagewise: a request could not be measured', error);
  }
}

/** Measures a complete request, which arrived at `arrivedMs` of the page's clock, with all of its answers. */
function measureRequest(request: string, arrivedMs: number, finishes: readonly FinishedEvent[]): void {
  const { usage, timings } = combine(finishes);
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = usage;
  const startMs = arrivedMs + timings.queue_ms;
  // Without a token there is no time of the first one: the end has just been told.
  const firstMs = completion_tokens === 0 ? performance.now() : arrivedMs + timings.ttft_ms;
  measure('queue', arrivedMs, startMs, { request, tokens: prompt_tokens });
  measure('prefill', startMs, firstMs, { request, tokens: prompt_tokens - prompt_tokens_details.cached_tokens });
  for (const { choice, usage, timings } of finishes) {
    const tokens = usage.completion_tokens;
    if (tokens === 0) continue;
    const start = arrivedMs + timings.ttft_ms;
    measure('decode', start, start + (tokens - 1) * (timings.tpot_ms ?? 0), { request, choice, tokens });
  }
}

function measure(phase: keyof typeof PHASES, start: number, end: number, detail: Detail): void {
  const name = `pagewise:${phase}`;
  const devtools = {
    dataType: 'track-entry',
    trackGroup: 'Pagewise',
    track: 'Requests',
    color: PHASES[phase],
    tooltipText: `${phase}: ${detail.tokens} tokens`,
    properties: Object.entries(detail).map(([key, value]) => [key, String(value)]),
  };
  performance.measure(name, { start, end: Math.max(start, end), detail: { ...detail, devtools } });
  // Observers and DevTools have it already; what stays in the page's buffer would stay for ever.
  performance.clearMeasures(name);
}
