/** The page's few icons, drawn here so that nothing is fetched. They repeat a label and are hidden from readers. */
import type { JSX } from 'preact';

const PATHS = {
  send: 'M12 19V5M5.5 11.5 12 5l6.5 6.5',
  close: 'M6 6l12 12M18 6 6 18',
  plus: 'M12 5v14M5 12h14',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4',
  chevron: 'm6 9 6 6 6-6',
  down: 'M12 5v14M5.5 12.5 12 19l6.5-6.5',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  retry: 'M20 12a8 8 0 1 1-2.6-5.9M20 4v4h-4',
  alert: 'M12 8v5M12 16.5v.1M12 3 2.5 20h19z',
} as const;

export type IconName = keyof typeof PATHS | 'stop';

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      {name === 'stop' ? (
        <rect x="6.5" y="6.5" width="11" height="11" rx="2" fill="currentColor" />
      ) : (
        <path
          d={PATHS[name]}
          fill="none"
          stroke="currentColor"
          stroke-width="1.8"
          stroke-linecap="round"
          stroke-linejoin="round"
        />
      )}
    </svg>
  );
}

/** The mark: three pages in place, one free. */
export function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <g fill="var(--on-accent)" stroke="var(--on-accent)" stroke-width="2.2">
        <rect x="8.2" y="8.2" width="6.2" height="6.2" rx="1.4" />
        <rect x="17.6" y="8.2" width="6.2" height="6.2" rx="1.4" />
        <rect x="8.2" y="17.6" width="6.2" height="6.2" rx="1.4" />
        <rect x="17.6" y="17.6" width="6.2" height="6.2" rx="1.4" fill="none" />
      </g>
    </svg>
  );
}
