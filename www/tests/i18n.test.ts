/** The catalogues of all areas, in all languages, against each other and against the components. */
import { afterEach, describe, expect, it } from 'vitest';
import { LANGS, lang, translator } from '../src/i18n';
import { formatBytes, formatCount, formatPercent } from '../src/i18n/format';
import { firstLang, followLang, setLang } from '../src/i18n/lang';
import { type Catalogue, type Message, paramNames } from '../src/i18n/messages';

const modules = import.meta.glob<Record<string, Catalogue>>('../src/i18n/*/*.ts', { eager: true });
const components = import.meta.glob<string>('../src/**/*.tsx', { eager: true, query: '?raw', import: 'default' });
const areas = Object.keys(modules).flatMap((path) => /\/en\/(.+)\.ts$/.exec(path)?.[1] ?? []);

function catalogue(of: string, area: string): Catalogue {
  const [found] = Object.values(modules[`../src/i18n/${of}/${area}.ts`] ?? {});
  if (!found) throw new Error(`no catalogue ${of}/${area}`);
  return found;
}

afterEach(() => {
  lang.value = 'en';
});

describe.each(areas)('the messages of %s', (area) => {
  const en = catalogue('en', area);

  it('take the same parameters in every language', () => {
    for (const of of LANGS) {
      const other = catalogue(of, area);
      for (const [key, message] of Object.entries(en)) {
        const withoutCount = (one: Message | undefined): string[] =>
          paramNames(one ?? '').filter((name) => name !== 'count');
        expect([of, key, withoutCount(other[key])]).toEqual([of, key, withoutCount(message)]);
      }
    }
  });

  it('are there and not empty in every language', () => {
    for (const of of LANGS) {
      expect(Object.keys(catalogue(of, area)).sort()).toEqual(Object.keys(en).sort());
      for (const [key, message] of Object.entries(catalogue(of, area))) {
        const texts = typeof message === 'string' ? [message] : Object.values<string>({ ...message });
        expect([key, texts.every((text) => text.trim() !== '')]).toEqual([key, true]);
      }
    }
  });

  it('have the plural forms that each language needs', () => {
    for (const of of LANGS) {
      const { pluralCategories } = new Intl.PluralRules(of).resolvedOptions();
      for (const [key, message] of Object.entries(catalogue(of, area))) {
        if (typeof message === 'string') continue;
        expect([key, Object.keys(message).sort()]).toEqual([key, [...pluralCategories].sort()]);
      }
    }
  });
});

describe('t', () => {
  const t = translator(
    { hello: 'Hello {name}', files: { one: '{count} file', other: '{count} files' } },
    { hello: '你好，{name}', files: { other: '{count} 个文件' } },
  );

  it('fills in parameters and chooses plurals', () => {
    expect(t('hello', { name: 'Ada' })).toBe('Hello Ada');
    expect(t('files', { count: 1 })).toBe('1 file');
    expect(t('files', { count: 1200 })).toBe('1,200 files');
  });

  it('follows the language', () => {
    lang.value = 'zh';
    expect(t('hello', { name: 'Ada' })).toBe('你好，Ada');
    expect(t('files', { count: 1 })).toBe('1 个文件');
  });

  it('inserts what looks like a parameter as it is', () => {
    expect(t('hello', { name: '{name} $& {count}' })).toBe('Hello {name} $& {count}');
  });
});

describe('the language', () => {
  it.each([
    ['?lang=zh', ['en-US'], 'zh'],
    ['', ['zh-TW', 'en'], 'zh'],
    ['', ['de', 'en-GB', 'zh'], 'en'],
    ['?lang=de', ['fr'], 'en'],
  ])('for %s and %j is %s', (search, preferred, expected) => {
    expect(firstLang(search, preferred)).toBe(expected);
  });

  it('is remembered, and written on the page', () => {
    const stop = followLang();
    setLang('zh');
    expect(firstLang('', ['en'])).toBe('zh');
    expect([document.documentElement.lang, document.documentElement.dir]).toEqual(['zh-Hans', 'ltr']);
    stop();
  });

  it('follows what another tab chooses', () => {
    const stop = followLang();
    dispatchEvent(new StorageEvent('storage', { key: 'pagewise.lang', newValue: 'zh' }));
    expect(document.documentElement.lang).toBe('zh-Hans');
    dispatchEvent(new StorageEvent('storage', { key: 'pagewise.lang', newValue: 'no such' }));
    dispatchEvent(new StorageEvent('storage', { key: 'pagewise.other', newValue: 'en' }));
    expect(lang.value).toBe('zh');
    stop();
  });

  it('writes numbers its own way', () => {
    expect([formatBytes(1234567), formatCount(1234567), formatPercent(0.421)]).toEqual(['1.2 MB', '1,234,567', '42%']);
  });
});

/** Words in JSX: text between tags, and attributes that people read. */
function hardCodedText(code: string): string[] {
  const bare = code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const found: string[] = [];
  // Between the end of a tag and the beginning of the next, outside braces. Types and arrows look alike, so letters only.
  for (const [, text = ''] of bare.matchAll(
    /(?<=[\w"'}/]|\n\s*)>([^<>{}()=;|&]*[\p{L}]{2,}[^<>{}()=;|&]*)(?=<\/|<[a-zA-Z]|\{)/gu,
  )) {
    found.push(text.trim());
  }
  const attributes =
    /\b(?:aria-label|aria-valuetext|title|placeholder|alt|label|lead|help|note)=(?:"([^"]*\p{L}{2,}[^"]*)"|\{\s*['"`]([^'"`]*\p{L}{2,}[^'"`]*)['"`]\s*\})/gu;
  for (const [, plain, braced] of bare.matchAll(attributes)) found.push(plain ?? braced ?? '');
  return found;
}

describe('components', () => {
  it('are scanned by a rule that finds words', () => {
    expect(hardCodedText('<p class="x">Hello there</p>')).toEqual(['Hello there']);
    expect(hardCodedText('<p>{t("x")} of {n}</p>')).toEqual([]);
    expect(hardCodedText('<p>Loaded {n} files</p>')).toContain('Loaded');
    expect(hardCodedText('<button aria-label="Close" title={"Shut"} />')).toEqual(['Close', 'Shut']);
    expect(hardCodedText('<p>{t("x")}</p>\nconst f = (a: Map<string, X>) => a;')).toEqual([]);
  });

  it.each(Object.entries(components))('%s has no words of its own', (_, code) => {
    expect(hardCodedText(code)).toEqual([]);
  });
});
