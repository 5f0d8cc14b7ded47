/** Light, dark, or as the system says. */
import { effect, type Signal, signal } from '@preact/signals';

export const SCHEMES = ['auto', 'light', 'dark'] as const;
export type Scheme = (typeof SCHEMES)[number];

const STORAGE_KEY = 'pagewise.scheme';

export const scheme: Signal<Scheme> = signal(stored());

/** Changes the colours and remembers it. */
export function setScheme(next: Scheme): void {
  scheme.value = next;
  try {
    localStorage.setItem(STORAGE_KEY, next);
  } catch {
    // A browser that forbids storage forgets the choice.
  }
}

/** Keeps `<html data-scheme>` true, as chosen here or in another tab; the style sheet does the rest. */
export function followScheme(root: HTMLElement = document.documentElement): () => void {
  const onStorage = ({ key, newValue }: StorageEvent): void => {
    const chosen = SCHEMES.find((one) => key === STORAGE_KEY && one === newValue);
    if (chosen) scheme.value = chosen;
  };
  addEventListener('storage', onStorage);
  const stop = effect(() => {
    if (scheme.value === 'auto') delete root.dataset.scheme;
    else root.dataset.scheme = scheme.value;
  });
  return () => {
    removeEventListener('storage', onStorage);
    stop();
  };
}

function stored(): Scheme {
  try {
    return SCHEMES.find((one) => one === localStorage.getItem(STORAGE_KEY)) ?? 'auto';
  } catch {
    return 'auto';
  }
}
