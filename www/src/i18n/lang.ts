/** Which language the page speaks: the visitor's choice, else the browser's, else English. */
import { effect, type Signal, signal } from '@preact/signals';

/** The languages there are catalogues for. */
export const LANGS = ['en', 'zh'] as const;
export type Lang = (typeof LANGS)[number];

/** Each language's own name, BCP 47 tag and direction of writing. */
export const LANG_INFO: Readonly<Record<Lang, { name: string; tag: string; dir: 'ltr' | 'rtl' }>> = {
  en: { name: 'English', tag: 'en', dir: 'ltr' },
  zh: { name: '中文', tag: 'zh-Hans', dir: 'ltr' },
};

const STORAGE_KEY = 'pagewise.lang';

/** The language of now; whatever renders text reads it, and so is rendered again when it changes. */
export const lang: Signal<Lang> = signal(firstLang());

/** Changes the language and remembers it. */
export function setLang(next: Lang): void {
  lang.value = next;
  try {
    localStorage.setItem(STORAGE_KEY, next);
  } catch {
    // A browser that forbids storage forgets the choice.
  }
}

/** The language there is for a BCP 47 tag. */
export function langOf(tag: string | null): Lang | undefined {
  return LANGS.find((one) => tag?.toLowerCase().split('-')[0] === one);
}

/** `?lang=`, then what was chosen before, then the first of the browser's languages that there is. */
export function firstLang(search: string = location.search, preferred: readonly string[] = navigator.languages): Lang {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(STORAGE_KEY);
  } catch {
    // As above.
  }
  const found = langOf(new URLSearchParams(search).get('lang')) ?? langOf(stored);
  return found ?? preferred.map(langOf).find((one) => one !== undefined) ?? 'en';
}

/** Keeps `<html lang dir>` true, and takes over what is chosen in another tab. */
export function followLang(root: HTMLElement = document.documentElement): () => void {
  const onStorage = ({ key, newValue }: StorageEvent): void => {
    const chosen = LANGS.find((one) => key === STORAGE_KEY && one === newValue);
    if (chosen) lang.value = chosen;
  };
  addEventListener('storage', onStorage);
  const stop = effect(() => {
    const { tag, dir } = LANG_INFO[lang.value];
    root.lang = tag;
    root.dir = dir;
  });
  return () => {
    removeEventListener('storage', onStorage);
    stop();
  };
}
