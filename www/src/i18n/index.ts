/**
 * Text in the visitor's language. An area of the page has a catalogue in each language and makes its own `t`:
 *
 * ```ts
 * const t = translator(en, zh);
 * t('tokens', { count: 3 }); // "3 tokens", "3 个 token"
 * ```
 *
 * Keys and parameters are checked by the compiler. `t` reads the language's signal, so components follow a change.
 */
import { formatNumber } from './format';
import { LANG_INFO, type Lang, lang } from './lang';
import type { Catalogue, Message, ParamArgs, Translation } from './messages';

export { LANG_INFO, LANGS, type Lang, lang, setLang } from './lang';
export type { Catalogue, Message, Translation } from './messages';

/** Looks up a key of one area. */
export type Translate<En extends Catalogue> = <Key extends keyof En & string>(
  key: Key,
  ...args: ParamArgs<En[Key]>
) => string;

/** The `t` of one area. */
export function translator<const En extends Catalogue>(en: En, zh: Translation<En>): Translate<En> {
  const catalogues: Readonly<Record<Lang, Translation<En>>> = { en, zh };
  return (key, ...args) => {
    const params: Readonly<Record<string, string | number>> = args[0] ?? {};
    return fill(choose(catalogues[lang.value][key], params), params);
  };
}

function choose(message: Message, { count }: Readonly<Record<string, string | number>>): string {
  if (typeof message === 'string') return message;
  const category = pluralRules(lang.value).select(Number(count));
  return message[category] ?? message.other;
}

function fill(text: string, params: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name];
    if (value === undefined) return whole;
    return typeof value === 'number' ? formatNumber(value) : value;
  });
}

const rules = new Map<Lang, Intl.PluralRules>();

function pluralRules(of: Lang): Intl.PluralRules {
  const found = rules.get(of) ?? new Intl.PluralRules(LANG_INFO[of].tag);
  rules.set(of, found);
  return found;
}
