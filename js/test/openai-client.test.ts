import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { createFetch, Engine } from '../src/index.js';
import { FakeWorker, fakeModel, type Script } from './fake.js';

const CALL: Script = {
  events: [
    { kind: 'call', index: 0, id: 'call_a', name: 'weather' },
    { kind: 'arguments', index: 0, text: '{"city": ' },
    { kind: 'arguments', index: 0, text: '"Bern"}' },
  ],
  reason: 'tool_calls',
};

/** A model that calls a function, and repeats in words what that returned. */
async function start(): Promise<OpenAI> {
  const worker = new FakeWorker({
    answer: 'It rains.',
    script: ({ input }) =>
      'messages' in input && input.messages.every(({ role }) => role !== 'tool') ? CALL : undefined,
  });
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  return new OpenAI({ apiKey: 'none', maxRetries: 0, fetch: createFetch(engine) as never });
}

const asked: unknown[] = [];
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'weather',
      description: 'The weather.',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      parse: JSON.parse,
      function: (place: object) => {
        asked.push(place);
        return 'rain';
      },
    },
  },
];
const params = { model: 'fake-model', messages: [{ role: 'user' as const, content: 'Weather?' }] };

test('runTools calls what the model wants called, and goes on with the result', async () => {
  const openai = await start();
  asked.length = 0;
  const runner = openai.chat.completions.runTools({ ...params, tools });
  expect(await runner.finalContent()).toBe('It rains.');
  expect(asked).toEqual([{ city: 'Bern' }]);
  expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
});

test('runTools does the same with streams', async () => {
  const openai = await start();
  asked.length = 0;
  const runner = openai.chat.completions.runTools({ ...params, tools, stream: true });
  const deltas: string[] = [];
  runner.on('tool_calls.function.arguments.delta', ({ arguments_delta }) => deltas.push(arguments_delta));
  expect(await runner.finalContent()).toBe('It rains.');
  expect(asked).toEqual([{ city: 'Bern' }]);
  expect(deltas.filter((delta) => delta !== '')).toEqual(['{"city": ', '"Bern"}']);
});

test('embeddings are decoded from what the client asks for by itself', async () => {
  const openai = await start();
  const { data } = await openai.embeddings.create({ model: 'fake-model', input: 'Hi' });
  expect(data[0]?.embedding).toEqual([Math.fround(0.6), Math.fround(0.8)]);
});

test('log-probabilities come streamed and at once', async () => {
  const openai = await start();
  const plain = {
    ...params,
    messages: [...params.messages, { role: 'tool' as const, tool_call_id: 'call_a', content: '' }],
  };
  const call = { id: 'call_a', type: 'function' as const, function: { name: 'weather', arguments: '{}' } };
  plain.messages.splice(1, 0, { role: 'assistant', tool_calls: [call] } as never);
  const { choices } = await openai.chat.completions.create({ ...plain, logprobs: true, top_logprobs: 2 });
  const content = choices[0]?.logprobs?.content ?? [];
  expect(content.map(({ token }) => token).join('')).toBe('It rains.');
  expect(content[0]?.top_logprobs).toHaveLength(2);
  const stream = openai.chat.completions.stream({ ...plain, logprobs: true });
  const final = await stream.finalChatCompletion();
  expect(final.choices[0]?.logprobs?.content).toHaveLength(content.length);
});
