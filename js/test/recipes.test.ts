import { afterEach, expect, test, vi } from 'vitest';
import type { EngineRequest } from '../src/protocol.js';
import { useShareEnvironment } from '../src/share-environment.js';
import { documentOf, FakeFile, run } from './examples.js';
import type { FakeOptions } from './fake.js';
import { FakeBus } from './fake-bus.js';
import { FakeLocks } from './fake-locks.js';

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

test('An answer as JSON', async () => {
  const code = recipe('An answer as JSON');
  const requests: EngineRequest[] = [];
  const script: FakeOptions['script'] = (request) => {
    requests.push(request);
    const text = '{"mood": "mixed", "stars": 3, "quote": "what a view"}';
    return { events: [{ kind: 'text', text }], reason: 'stop' };
  };
  expect(await run(code, { script })).toEqual(['mixed, 3 of 5: what a view']);
  expect(requests[0]?.constraint).toMatchObject({ kind: 'json_schema', name: 'review' });
  vi.restoreAllMocks();
  const cut: FakeOptions['script'] = { events: [{ kind: 'text', text: '{"mood": "mi' }], reason: 'length' };
  await expect(run(code, { script: cut })).rejects.toThrow('300 tokens are too few');
});

test('Tools that the model calls', async () => {
  const code = recipe('Tools that the model calls');
  const call: FakeOptions['script'] = {
    events: [
      { kind: 'call', index: 0, id: 'call_a', name: 'weather' },
      { kind: 'arguments', index: 0, text: '{"city": "Bern"}' },
    ],
    reason: 'tool_calls',
  };
  const answered = 'Rain in Bern, 12 degrees.';
  const script: FakeOptions['script'] = ({ input }) => (JSON.stringify(input).includes(answered) ? undefined : call);
  expect(await run(code, { script })).toEqual(['Hello']);
  vi.restoreAllMocks();
  const error = { code: 'malformed', message: 'no name' } as const;
  const broken: FakeOptions['script'] = {
    events: [{ kind: 'malformed', index: 0, text: '<tool_call>', error }],
    reason: 'stop',
  };
  expect(await run(code, { script: broken })).toEqual(['not a call: no name', '<tool_call>']);
});

test('One model for all tabs', async () => {
  const [locks, bus] = [new FakeLocks().of({}), new FakeBus()];
  useShareEnvironment(() => {
    return {
      locks,
      openBroadcast: (name) => bus.open(name),
      createSharedWorker: undefined,
      page: undefined,
      tickMs: 20,
    };
  });
  expect(await run(recipe('One model for all tabs'))).toEqual(['tab 1', 'Hello']);
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
  expect(titles.length).toBe(13);
});
