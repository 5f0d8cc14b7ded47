/**
 * What the visitor can set: sampling, system prompt, and how a model is loaded.
 *
 * Kept in `localStorage` and, for links and tests, preset by the page's address (`?temperature=0&max_tokens=32`).
 * Values from the address hold for this visit only.
 */

import { LANGS, langOf } from '../i18n/lang';

/** Number format of the KV cache. */
export type KvFormat = 'f16' | 'f32';

export interface Settings {
  /** 0 always takes the likeliest token. */
  temperature: number;
  /** Keep the likeliest tokens that together have this probability; 1 keeps all. */
  topP: number;
  /** Keep this many of the likeliest tokens; 0 keeps all. */
  topK: number;
  /** Keep tokens at least this fraction as likely as the likeliest; 0 keeps all. */
  minP: number;
  /** Divides the score of tokens already in the text; 1 changes nothing. */
  repetitionPenalty: number;
  /** Longest answer, in tokens. */
  maxTokens: number;
  /** Same seed, same answer; null draws a new one each time. */
  seed: number | null;
  /** Instructions before the conversation; empty for none. */
  systemPrompt: string;
  /** Longest conversation in tokens; null lets the model and the GPU's memory decide. Takes effect on the next load. */
  contextLength: number | null;
  /** Takes effect on the next load. */
  kvFormat: KvFormat;
  /** Whether a model that is loaded from a server is kept on this device, for use without a network. */
  storeModels: boolean;
}

export const DEFAULT_SETTINGS: Readonly<Settings> = {
  temperature: 0.7,
  topP: 0.95,
  topK: 40,
  minP: 0.05,
  repetitionPenalty: 1.1,
  maxTokens: 512,
  seed: null,
  systemPrompt: '',
  contextLength: null,
  kvFormat: 'f16',
  storeModels: true,
};

type NumberKey = 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty' | 'maxTokens';
type OptionalNumberKey = 'seed' | 'contextLength';

/** How one number is named and bounded. What it is called on the screen is in the catalogue `settings`. */
export interface NumberField<Key extends string = NumberKey | OptionalNumberKey> {
  readonly key: Key;
  /** Its name in the page's address, as in OpenAI's requests. */
  readonly param: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

/** Settings shown as a slider with a number beside it. */
export const NUMBER_FIELDS: readonly NumberField<NumberKey>[] = [
  {
    key: 'temperature',
    param: 'temperature',
    min: 0,
    max: 2,
    step: 0.05,
  },
  {
    key: 'topP',
    param: 'top_p',
    min: 0.05,
    max: 1,
    step: 0.05,
  },
  {
    key: 'topK',
    param: 'top_k',
    min: 0,
    max: 200,
    step: 1,
  },
  {
    key: 'minP',
    param: 'min_p',
    min: 0,
    max: 1,
    step: 0.01,
  },
  {
    key: 'repetitionPenalty',
    param: 'repetition_penalty',
    min: 0.5,
    max: 2,
    step: 0.05,
  },
  {
    key: 'maxTokens',
    param: 'max_tokens',
    min: 1,
    max: 8192,
    step: 1,
  },
];

/** Settings that may be left empty. */
export const OPTIONAL_FIELDS: readonly NumberField<OptionalNumberKey>[] = [
  {
    key: 'seed',
    param: 'seed',
    min: 0,
    max: 4294967295,
    step: 1,
  },
  {
    key: 'contextLength',
    param: 'context_length',
    min: 64,
    max: 131072,
    step: 1,
  },
];

const STORAGE_KEY = 'pagewise.settings';

/** The stored settings; whatever is missing, unreadable or out of bounds is the default. */
export function loadSettings(storage: Pick<Storage, 'getItem'> = localStorage): Settings {
  let stored: unknown;
  try {
    stored = JSON.parse(storage.getItem(STORAGE_KEY) ?? '{}');
  } catch {
    // Storage may be forbidden or hold something else; the defaults always work.
  }
  const values: Record<string, unknown> = typeof stored === 'object' && stored !== null ? { ...stored } : {};
  const settings: Settings = { ...DEFAULT_SETTINGS };
  for (const field of NUMBER_FIELDS) {
    const value = values[field.key];
    if (typeof value === 'number' && isAllowed(field, value)) settings[field.key] = value;
  }
  for (const field of OPTIONAL_FIELDS) {
    const value = values[field.key];
    if (typeof value === 'number' && isAllowed(field, value)) settings[field.key] = value;
  }
  if (typeof values.systemPrompt === 'string') settings.systemPrompt = values.systemPrompt;
  if (values.kvFormat === 'f32') settings.kvFormat = 'f32';
  if (values.storeModels === false) settings.storeModels = false;
  return settings;
}

/** Stores `settings`; a browser that forbids it merely forgets them. */
export function saveSettings(settings: Settings, storage: Pick<Storage, 'setItem'> = localStorage): void {
  try {
    storage.setItem(STORAGE_KEY, JSON.stringify(settings));
  } catch {
    // Private windows and full quotas: settings then last as long as the page.
  }
}

/** A value of the address that was not used. */
export interface AddressProblem {
  readonly param: string;
  readonly value: string;
  /** What would be used: a range, names, or null for a model that is neither an id nor an address. */
  readonly allowed: readonly [min: number, max: number] | string | null;
}

/** What the page's address asks for. */
export interface AddressPresets {
  /** A registry id or a URL. */
  readonly model: string | null;
  readonly settings: Partial<Settings>;
  readonly problems: readonly AddressProblem[];
}

/** Reads `?model=...&temperature=...`; README lists the names. */
export function readAddress(search: string): AddressPresets {
  const params = new URLSearchParams(search);
  const settings: Partial<Settings> = {};
  const problems: AddressProblem[] = [];
  for (const field of [...NUMBER_FIELDS, ...OPTIONAL_FIELDS]) {
    const text = params.get(field.param);
    if (text === null) continue;
    const value = parseNumber(field, text);
    if (value === null) {
      problems.push({ param: field.param, value: text, allowed: [field.min, field.max] });
    } else {
      settings[field.key] = value;
    }
  }
  const system = params.get('system');
  if (system !== null) settings.systemPrompt = system;
  const kv = params.get('kv');
  if (kv === 'f16' || kv === 'f32') settings.kvFormat = kv;
  else if (kv !== null) problems.push({ param: 'kv', value: kv, allowed: 'f16, f32' });
  const store = params.get('store');
  if (store === '0' || store === '1') settings.storeModels = store === '1';
  else if (store !== null) problems.push({ param: 'store', value: store, allowed: '0, 1' });
  const language = params.get('lang');
  if (language !== null && !langOf(language))
    problems.push({ param: 'lang', value: language, allowed: LANGS.join(', ') });
  return { model: params.get('model'), settings, problems };
}

/** The number `text` stands for, or null when it is none or outside the field's bounds. */
export function parseNumber(field: NumberField, text: string): number | null {
  const value = Number(text);
  return text.trim() !== '' && isAllowed(field, value) ? value : null;
}

function isAllowed(field: NumberField, value: number): boolean {
  const whole = Number.isInteger(field.step);
  return value >= field.min && value <= field.max && (!whole || Number.isInteger(value));
}
