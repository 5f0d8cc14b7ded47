/**
 * What the visitor can set: sampling, system prompt, and how a model is loaded.
 *
 * Kept in `localStorage` and, for links and tests, preset by the page's address (`?temperature=0&max_tokens=32`).
 * Values from the address hold for this visit only. Nothing else of the visitor's is stored.
 */

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
};

type NumberKey = 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty' | 'maxTokens';
type OptionalNumberKey = 'seed' | 'contextLength';

/** How one number is named, bounded and explained. */
export interface NumberField<Key extends string = NumberKey | OptionalNumberKey> {
  readonly key: Key;
  /** Its name in the page's address, as in OpenAI's requests. */
  readonly param: string;
  readonly label: string;
  readonly help: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

/** Settings shown as a slider with a number beside it. */
export const NUMBER_FIELDS: readonly NumberField<NumberKey>[] = [
  {
    key: 'temperature',
    param: 'temperature',
    label: 'Temperature',
    help: 'Higher is more varied. 0 always takes the likeliest word.',
    min: 0,
    max: 2,
    step: 0.05,
  },
  {
    key: 'topP',
    param: 'top_p',
    label: 'Top-p',
    help: 'Choose among the likeliest words that make up this share. 1 is off.',
    min: 0.05,
    max: 1,
    step: 0.05,
  },
  {
    key: 'topK',
    param: 'top_k',
    label: 'Top-k',
    help: 'Choose among this many of the likeliest words. 0 is off.',
    min: 0,
    max: 200,
    step: 1,
  },
  {
    key: 'minP',
    param: 'min_p',
    label: 'Min-p',
    help: 'Leave out words less likely than this share of the likeliest. 0 is off.',
    min: 0,
    max: 1,
    step: 0.01,
  },
  {
    key: 'repetitionPenalty',
    param: 'repetition_penalty',
    label: 'Repetition penalty',
    help: 'Above 1 makes the model repeat itself less.',
    min: 0.5,
    max: 2,
    step: 0.05,
  },
  {
    key: 'maxTokens',
    param: 'max_tokens',
    label: 'Max tokens',
    help: 'Longest answer, in tokens; one is about three quarters of a word. A full context ends it sooner.',
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
    label: 'Seed',
    help: 'The same seed gives the same answer. Empty draws a new one each time.',
    min: 0,
    max: 4294967295,
    step: 1,
  },
  {
    key: 'contextLength',
    param: 'context_length',
    label: 'Context length',
    help: 'Tokens the model can look back on. Empty uses what the model and this GPU allow.',
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

/** What the page's address asks for. */
export interface AddressPresets {
  /** A registry id or a URL. */
  readonly model: string | null;
  readonly settings: Partial<Settings>;
  /** One sentence for each value that was not used. */
  readonly problems: readonly string[];
}

/** Reads `?model=...&temperature=...`; README lists the names. */
export function readAddress(search: string): AddressPresets {
  const params = new URLSearchParams(search);
  const settings: Partial<Settings> = {};
  const problems: string[] = [];
  for (const field of [...NUMBER_FIELDS, ...OPTIONAL_FIELDS]) {
    const text = params.get(field.param);
    if (text === null) continue;
    const value = parseNumber(field, text);
    if (value === null) {
      problems.push(
        `${field.param}=${text} in the address is not used: it must be a number from ${field.min} to ${field.max}.`,
      );
    } else {
      settings[field.key] = value;
    }
  }
  const system = params.get('system');
  if (system !== null) settings.systemPrompt = system;
  const kv = params.get('kv');
  if (kv === 'f16' || kv === 'f32') settings.kvFormat = kv;
  else if (kv !== null) problems.push(`kv=${kv} in the address is not used: it must be f16 or f32.`);
  return { model: params.get('model') || null, settings, problems };
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
