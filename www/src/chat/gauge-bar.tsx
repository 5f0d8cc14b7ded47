/** The context as a bar: in the cache, to be computed, kept for the answer. */
import type { JSX } from 'preact';

export interface GaugeBarProps {
  readonly used: number;
  readonly cached: number;
  /** Tokens kept for the answer. */
  readonly kept: number;
  readonly total: number;
}

export function GaugeBar({ used, cached, kept, total }: GaugeBarProps): JSX.Element {
  const share = (tokens: number): { width: string } => ({ width: `${Math.min(100, (tokens / total) * 100)}%` });
  return (
    <span class={used + kept > total ? 'gauge-bar full' : 'gauge-bar'} aria-hidden="true">
      <i class="reused" style={share(cached)} />
      <i class="computed" style={share(used - cached)} />
      <i class="kept" style={share(kept)} />
    </span>
  );
}
