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
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M5.5 12h.1M12 12h.1M18.5 12h.1',
  search: 'M16.2 16.2 20.5 20.5M18 11a7 7 0 1 1-14 0 7 7 0 0 1 14 0z',
  edit: 'm14.5 5.5 4 4L8 20H4v-4zM12.5 7.5l4 4',
  trash: 'M4.5 7h15M9.5 7V4h5v3M6.5 7l1 13h9l1-13M10.5 11v5M13.5 11v5',
  attach: 'm19.5 11.5-8 8a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8L9.5 17a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6',
  branch:
    'M7 8v8M7 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM7 21a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM17 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM17 9c0 4-3 4.5-6 5.2-2 .5-4 1-4 1.8',
  download: 'M12 4v11M7 10.5l5 5 5-5M4.5 19.5h15',
  upload: 'M12 15.5V4.5M7 9l5-5 5 5M4.5 19.5h15',
  shield: 'M12 3 5 5.8v5.7c0 4.5 3 7.8 7 9.5 4-1.7 7-5 7-9.5V5.8zM9 12l2.2 2.2L15.2 10',
  book: 'M5 5a2 2 0 0 1 2-2h12v15H7a2 2 0 0 0-2 2zM5 20a2 2 0 0 0 2 1.5h12M9 7.5h6',
  gauge: 'M4 17a8.5 8.5 0 1 1 16 0M12 15l4-5M12 15v.1',
  history: 'M4 12a8 8 0 1 0 2.6-5.9M4 4v4h4M12 8v4.5l3 2',
  start: 'm14.5 6-6 6 6 6',
  end: 'm9.5 6 6 6-6 6',
  file: 'M6 3h8l5 5v13H6zM14 3v5h5',
  chat: 'M4.5 5h15v11H12l-4.5 4v-4h-3z',
  cache: 'M4.5 4.5h6v6h-6zM13.5 4.5h6v6h-6zM4.5 13.5h6v6h-6zM13.5 13.5h6v6h-6z',
  batching: 'M4 6.5h9M7 12h11M4 17.5h6M13.5 17.5H20',
  floor: 'M4 19.5h16M4 14.5l4.5-6 4 3.5L20 5',
  memory: 'M6 8h12v8H6zM8.5 8V4.5M12 8V4.5M15.5 8V4.5M8.5 19.5V16M12 19.5V16M15.5 19.5V16',
  doctor: 'M4 12h3.5l2-5 4 10 2.5-5H20',
  documents: 'M7 3h7l4 4v10H7zM14 3v4h4M7 7H4v14h10v-4',
} as const;

export type IconName = keyof typeof PATHS | 'stop';

/** Those that point along the line of text, and turn with it. */
const ALONG_TEXT: ReadonlySet<string> = new Set(['start', 'end']);

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg
      class={ALONG_TEXT.has(name) ? 'icon along-text' : 'icon'}
      viewBox="0 0 24 24"
      aria-hidden="true"
      focusable="false"
    >
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
