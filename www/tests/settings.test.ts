import { describe, expect, it } from 'vitest';
import {
  DEFAULT_SETTINGS,
  loadSettings,
  NUMBER_FIELDS,
  OPTIONAL_FIELDS,
  parseNumber,
  readAddress,
  saveSettings,
} from '../src/state/settings';

function storageWith(value: string | null): { getItem: () => string | null } {
  return { getItem: () => value };
}

describe('stored settings', () => {
  it('come back as they were saved', () => {
    let stored = '';
    const settings = {
      ...DEFAULT_SETTINGS,
      temperature: 0,
      seed: 7,
      systemPrompt: 'Be brief.',
      kvFormat: 'f32' as const,
    };
    saveSettings(settings, {
      setItem: (_, value) => {
        stored = value;
      },
    });
    expect(loadSettings(storageWith(stored))).toEqual(settings);
  });

  it.each([null, 'not json', '[]', 'null', '3'])('are the defaults when storage holds %s', (value) => {
    expect(loadSettings(storageWith(value))).toEqual(DEFAULT_SETTINGS);
  });

  it('replace each value out of bounds by its default and keep the others', () => {
    const stored = JSON.stringify({
      temperature: 9,
      topK: 1.5,
      maxTokens: 12,
      seed: -1,
      systemPrompt: 4,
      kvFormat: 'q8',
    });
    expect(loadSettings(storageWith(stored))).toEqual({ ...DEFAULT_SETTINGS, maxTokens: 12 });
  });

  it('survive a browser that forbids storage', () => {
    const forbid = (): never => {
      throw new DOMException('denied', 'SecurityError');
    };
    expect(loadSettings({ getItem: forbid })).toEqual(DEFAULT_SETTINGS);
    expect(() => saveSettings({ ...DEFAULT_SETTINGS }, { setItem: forbid })).not.toThrow();
  });
});

describe('defaults', () => {
  it('lie within the bounds of their fields', () => {
    for (const field of NUMBER_FIELDS)
      expect(parseNumber(field, String(DEFAULT_SETTINGS[field.key]))).toBe(DEFAULT_SETTINGS[field.key]);
  });
});

describe('address', () => {
  it('sets every setting by its OpenAI name', () => {
    const { model, settings, problems } = readAddress(
      '?model=smollm2-135m-instruct&temperature=0&top_p=0.9&top_k=0&min_p=0.1&repetition_penalty=1&max_tokens=32&seed=3&context_length=512&kv=f32&store=0&system=Hi',
    );
    expect(model).toBe('smollm2-135m-instruct');
    expect(problems).toEqual([]);
    expect(settings).toEqual({
      temperature: 0,
      topP: 0.9,
      topK: 0,
      minP: 0.1,
      repetitionPenalty: 1,
      maxTokens: 32,
      seed: 3,
      contextLength: 512,
      kvFormat: 'f32',
      storeModels: false,
      systemPrompt: 'Hi',
    });
  });

  it('says which value it does not use and what is allowed', () => {
    const { settings, problems } = readAddress('?temperature=9&max_tokens=a&kv=q4&top_k=&lang=xx&colour=red');
    expect(settings).toEqual({});
    expect(problems).toHaveLength(5);
    expect(problems[4]).toEqual({ param: 'lang', value: 'xx', allowed: 'en, zh' });
    expect(readAddress('?lang=zh-TW&store=1').problems).toEqual([]);
    expect(problems[0]).toEqual({ param: 'temperature', value: '9', allowed: [0, 2] });
  });

  it('asks for nothing when empty', () => {
    expect(readAddress('')).toEqual({ model: null, settings: {}, problems: [] });
  });

  it('has one name for each field', () => {
    const names = [...NUMBER_FIELDS, ...OPTIONAL_FIELDS].map(({ param }) => param);
    expect(new Set(names).size).toBe(names.length);
  });
});
