/**
 * Which view is open, in the part of the address behind `#`: no server has to know it, under any base path.
 * `#/chat/12?x=1` is the view `chat` with the rest `['12']` and the query `x=1`.
 */
import { computed, type Signal, signal } from '@preact/signals';

/** The views, in the order of the navigation. */
export const VIEWS = [
  'chat',
  'labs/cache',
  'labs/batching',
  'labs/floor',
  'labs/memory',
  'labs/doctor',
  'labs/documents',
] as const;
export type ViewName = (typeof VIEWS)[number];

/** An address, taken apart. */
export interface Route {
  readonly view: ViewName;
  /** What follows the view's name in the path. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

const hash: Signal<string> = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

/** The address of now. */
export const route = computed(() => parseHash(hash.value));
/** The view of now; changes only when the view does. */
export const view = computed(() => route.value.view);

/** Reads an address; what is not known is the chat. */
export function parseHash(text: string): Route {
  const [path = '', query = ''] = text.replace(/^#\/?/, '').split('?', 2);
  const found = VIEWS.find((name) => path === name || path.startsWith(`${name}/`));
  const rest = found ? path.slice(found.length + 1).split('/') : [];
  return {
    view: found ?? 'chat',
    rest: rest.filter((part) => part !== '').map(decode),
    query: new URLSearchParams(query),
  };
}

/** The `href` of a view, for links. */
export function hrefTo(
  name: ViewName,
  rest: readonly string[] = [],
  query: Readonly<Record<string, string>> = {},
): string {
  const params = new URLSearchParams(query).toString();
  return `#/${[name, ...rest.map(encodeURIComponent)].join('/')}${params === '' ? '' : `?${params}`}`;
}

/** Goes to an address made by `hrefTo`; `replace` leaves no step in the browser's history. */
export function navigate(href: string, { replace = false } = {}): void {
  if (href === location.hash) return;
  if (replace) history.replaceState(history.state, '', href);
  else location.hash = href;
  hash.value = href;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
