import { afterEach, expect, test, vi } from 'vitest';
import { documentOf, FakeFile, run } from './examples.js';
import type { FakeOptions } from './fake.js';

const { text, examples } = documentOf('../../docs/recipes.md');
const titles = [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title);

const recipe = (title: string): string => examples[titles.indexOf(title)] ?? `throw new Error('no recipe: ${title}')`;

afterEach(() => {
  vi.restoreAllMocks();
  Reflect.deleteProperty(globalThis, 'LanguageModel');
});

test.each<[string, string[]]>([
  ['Chat', ['Hello (2 tokens were cached)', 'Hello (2 tokens were cached)']],
  [
    'Streaming, with progress while the prompt is computed',
    ['1 of 1 tokens read', ...'Hello', 'first token after 2 ms', 'first token after 2 ms'],
  ],
  ['A stop button', ['', 'stopped']],
  ['A long system prompt that stays warm', ['2 of 3 tokens are there, then: nothing is missing', 'Hello']],
  ["OpenAI's client", ['', ...'Hello', '']],
  ['Download once, work offline', ['100 %', 'Fake Model']],
  ['The Prompt API', ['0 %', '100 %', ...'Hello', 'Hello', '8 of 1000 tokens']],
  ['The AI SDK', ['Hello 2']],
])('%s', async (title, printed) => {
  const lines = await run(recipe(title));
  // Progress comes in as many steps as there are.
  expect(lines.filter((line) => !/^\d+ %$/.test(line) || printed.includes(line))).toEqual(printed);
});

test('Keep it over a reload', async () => {
  const file = new FakeFile();
  const code = recipe('Keep it over a reload');
  expect(await run(code, {}, file.navigator)).toEqual(['saved']);
  vi.restoreAllMocks();
  expect(await run(code, {}, file.navigator)).toEqual(['32 tokens are back, none was computed']);
});

test('A server for devices that cannot', async () => {
  const code = recipe('A server for devices that cannot');
  expect(await run(code)).toEqual(['local Hello']);
  vi.restoreAllMocks();
  const cannot: FakeOptions = { module: { loadEngine: () => Promise.reject({ code: 'no_webgpu', message: 'none' }) } };
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello from afar' }, finish_reason: 'stop' }];
  const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({ choices }));
  expect(await run(code, cannot)).toEqual(['not on this device: no_webgpu', 'remote Hello from afar']);
  expect(fetched.mock.calls.map(([url]) => url)).toEqual(['https://models.example/v1/chat/completions']);
});

test('each title has its recipe, and each recipe its test', () => {
  expect(examples.length).toBe(titles.length);
  expect(titles.length).toBe(10);
});
