import { describe, expect, it } from 'vitest';
import { choiceFromFiles, choiceName, parseChoice, parseRegistry, toSource } from '../src/state/models';

const BASE = 'https://page.example/chat/';

describe('parseChoice', () => {
  it('takes an id', () => {
    expect(parseChoice(' smollm2-135m-instruct ', BASE)).toEqual({
      kind: 'known',
      id: 'smollm2-135m-instruct',
      name: 'smollm2-135m-instruct',
    });
  });

  it.each([
    ['https://x.example/a.gguf', 'https://x.example/a.gguf'],
    ['models/a.gguf', 'https://page.example/chat/models/a.gguf'],
    ['/a.gguf', 'https://page.example/a.gguf'],
    ['a.GGUF', 'https://page.example/chat/a.GGUF'],
  ])('takes the address %s', (text, url) => {
    expect(parseChoice(text, BASE)).toEqual({ kind: 'url', url });
  });

  it.each([
    '',
    '  ',
    'two words',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'data:x,y',
    'http://x.example/a.gguf',
    'https://',
  ])('refuses "%s"', (text) => {
    expect(parseChoice(text, BASE)).toBeNull();
  });
});

it('a per cent sign that encodes nothing stays in the name of a model', () => {
  expect(choiceName({ kind: 'url', url: 'https://x.example/100%zz.gguf' })).toBe('100%zz.gguf');
  expect(choiceName({ kind: 'url', url: 'https://x.example/a%20b.gguf' })).toBe('a b.gguf');
});

describe('files', () => {
  const file = (name: string): File => new File(['x'], name);

  it('are one source alone and several in the order of their parts', () => {
    const one = choiceFromFiles([file('a.gguf')]);
    expect(one && toSource(one)).toBeInstanceOf(File);
    const two = choiceFromFiles([file('m-00002-of-00002.gguf'), file('m-00001-of-00002.gguf')]);
    const source = two ? toSource(two) : '';
    expect(Array.isArray(source) && source.map((part: File) => part.name)).toEqual([
      'm-00001-of-00002.gguf',
      'm-00002-of-00002.gguf',
    ]);
    expect(two && choiceName(two)).toBe('m-00001-of-00002.gguf');
  });

  it('are no choice when there are none', () => {
    expect(choiceFromFiles([])).toBeNull();
  });
});

describe('parseRegistry', () => {
  it('keeps the order, whose first is the default, and does without missing facts', () => {
    const models = parseRegistry({
      models: [{ id: 'b', name: 'B', bytes: 2, quantisation: 'Q8_0', licence: 'MIT', sources: [] }, { id: 'a' }],
    });
    expect(models).toEqual([
      { id: 'b', name: 'B', bytes: 2, quantisation: 'Q8_0', licence: 'MIT' },
      { id: 'a', name: 'a', bytes: null, quantisation: '', licence: '' },
    ]);
  });

  it.each([null, 3, {}, { models: 3 }, { models: [null, { name: 'no id' }] }])('is empty for %j', (json) => {
    expect(parseRegistry(json)).toEqual([]);
  });
});
