import { describe, expect, test } from 'vitest';
import { type ChatAnswerMessage, type ChatRequestMessage, Engine } from '../src/index.js';
import { checkChatRequest } from '../src/request.js';
import { type FakeOptions, FakeWorker, fakeModel, type ScriptedEvent } from './fake.js';

const messages = [{ role: 'user', content: 'Weather?' }] as const;
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', function: { name: 'weather', description: 'd', parameters } } as const;
const now = { type: 'function', function: { name: 'now' } } as const;
const tools = [weather, now] as const;
const check = (fields: object) => checkChatRequest({ messages, ...fields }, []).engineRequest;

async function start(options: FakeOptions): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker(options);
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  return { engine, worker };
}

const CALLS: ScriptedEvent[] = [
  { kind: 'text', text: 'I look.' },
  { kind: 'call', index: 0, id: 'call_a', name: 'weather' },
  { kind: 'arguments', index: 0, text: '{"city": ' },
  { kind: 'arguments', index: 0, text: '"Bern"}' },
  { kind: 'call', index: 1, id: 'call_b', name: 'now' },
  { kind: 'arguments', index: 1, text: '{}' },
];
const first = { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"city": "Bern"}' } };
const second = { id: 'call_b', type: 'function', function: { name: 'now', arguments: '{}' } };

describe('a request', () => {
  test('passes tools and the choice of them on', () => {
    expect(check({}).tools).toBeUndefined();
    expect(check({ tool_choice: 'none' }).tools).toBeUndefined();
    expect(check({ tools }).tools).toEqual({ list: tools, isRequired: false, isParallel: true });
    expect(check({ tools, tool_choice: 'none' }).tools).toBeUndefined();
    const required = check({ tools, tool_choice: 'required', parallel_tool_calls: false }).tools;
    expect(required).toEqual({ list: tools, isRequired: true, isParallel: false });
    const named = { type: 'function', function: { name: 'now' } };
    expect(check({ tools, tool_choice: named }).tools).toMatchObject({ isRequired: true, only: 1 });
    const strict = [{ type: 'function', function: { name: 'a', strict: true, description: null, parameters: null } }];
    expect(check({ tools: strict }).tools?.list).toEqual([{ type: 'function', function: { name: 'a', strict: true } }]);
  });

  test.each([
    [{ tools: [] }, 'tools: a list of at least one function'],
    [{ tools: 'weather' }, 'tools: '],
    [{ tools: [now, now] }, 'tools: the function "now" is given twice'],
    [{ tools: Array.from({ length: 129 }, () => now) }, 'tools: 129 given, 128 allowed'],
    [{ tools: [{ type: 'retrieval' }] }, 'tools[0].type: "function" is needed, "retrieval" given'],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name: '],
    [
      { tools: [{ type: 'function', function: { name: 'a', params: {} } }] },
      'tools[0].function.params is not supported',
    ],
    [{ tools: [now, { ...now, function: { name: 'a', parameters: [] } }] }, 'tools[1].function.parameters: '],
    [{ tools: [{ ...now, function: { name: 'a', strict: 1 } }] }, 'tools[0].function.strict: '],
    [{ tools: [{ ...now, function: { name: 'a', description: 1 } }] }, 'tools[0].function.description: '],
    [{ tool_choice: 'required' }, 'tool_choice: only with tools'],
    [{ parallel_tool_calls: true }, 'parallel_tool_calls: only with tools'],
    [{ tools, parallel_tool_calls: 1 }, 'parallel_tool_calls: true or false'],
    [{ tools, tool_choice: 'any' }, 'tool_choice: "auto", "none", "required" or'],
    [{ tools, tool_choice: { type: 'function', function: { name: 'x' } } }, 'tool_choice.function.name: one of'],
    [{ tools, tool_choice: { type: 'allowed_tools' } }, 'tool_choice.type: "function"'],
    [{ functions: [] }, 'functions is not supported'],
  ])('%o is refused by name', (fields, text) => {
    expect(() => check(fields)).toThrowError(expect.objectContaining({ code: 'bad_request' }));
    expect(() => check(fields)).toThrowError(text);
  });

  test('may ask for calls or a text of a format', () => {
    for (const format of [{ response_format: { type: 'json_object' } }, { regex: 'a' }, { grammar: 'start: "a"' }]) {
      const { constraint } = check(format);
      expect(constraint).toBeDefined();
      expect(check({ tools, ...format })).toMatchObject({ constraint, tools: { isRequired: false } });
      expect(check({ tools, tool_choice: 'required', ...format })).toMatchObject({
        constraint,
        tools: { isRequired: true },
      });
      const none = check({ tools, tool_choice: 'none', ...format });
      expect(none).toMatchObject({ constraint });
      expect(none.tools).toBeUndefined();
    }
  });

  test('keeps calls and their results in the conversation', () => {
    const conversation = [
      ...messages,
      // As clients hand back what they got.
      {
        role: 'assistant',
        content: null,
        refusal: null,
        annotations: [],
        parsed: null,
        tool_calls: [first, { ...second, index: 1 }],
      },
      { role: 'tool', tool_call_id: 'call_a', content: [{ type: 'text', text: 'Rain' }] },
      { role: 'tool', tool_call_id: 'call_b', content: 'Noon' },
    ];
    expect(check({ messages: conversation }).input).toEqual({
      messages: [
        ...messages,
        { role: 'assistant', content: '', tool_calls: [first, second] },
        { role: 'tool', content: 'Rain', tool_call_id: 'call_a' },
        { role: 'tool', content: 'Noon', tool_call_id: 'call_b' },
      ],
    });
  });

  test.each([
    [
      [{ role: 'tool', tool_call_id: 'call_x', content: 'a' }],
      'messages[1].tool_call_id: the id of a call in an earlier',
    ],
    [[{ role: 'tool', content: 'a' }], 'messages[1].tool_call_id: '],
    [[{ role: 'assistant', content: null }], 'messages[1].content: '],
    [[{ role: 'assistant', tool_calls: [] }], 'messages[1].content: '],
    [[{ role: 'assistant', tool_calls: {} }], 'messages[1].tool_calls: '],
    [[{ role: 'assistant', tool_calls: [{ ...first, type: 'custom' }] }], 'messages[1].tool_calls[0].type: '],
    [[{ role: 'assistant', tool_calls: [{ ...first, id: '' }] }], 'messages[1].tool_calls[0].id: '],
    [[{ role: 'assistant', tool_calls: [{ ...first, function: { name: 'a', arguments: {} } }] }], 'arguments: a text'],
    [[{ role: 'assistant', content: 'a', refusal: 'no' }], 'messages[1].refusal: only null is supported'],
    [[{ role: 'user', content: 'a', tool_calls: [first] }], 'messages[1].tool_calls is not supported'],
    [[{ role: 'function', content: 'a' }], 'messages[1].role: one of'],
  ])('%o is refused by name', (more, text) => {
    expect(() => check({ messages: [...messages, ...more] })).toThrowError(text);
  });
});

describe('an answer at once', () => {
  test("has calls in OpenAI's shape", async () => {
    const { engine, worker } = await start({ script: { events: CALLS, reason: 'tool_calls' } });
    const answer = await engine.chat.completions.create({ messages, tools });
    expect(answer.choices).toEqual([
      {
        index: 0,
        message: { role: 'assistant', content: 'I look.', refusal: null, tool_calls: [first, second] },
        finish_reason: 'tool_calls',
        logprobs: null,
      },
    ]);
    // And what came back may be sent again.
    const again: ChatRequestMessage[] = [
      ...messages,
      answer.choices[0]?.message as ChatAnswerMessage,
      { role: 'tool', tool_call_id: 'call_a', content: 'Rain' },
    ];
    await engine.chat.completions.create({ messages: again, tools });
    expect(worker.received.at(-1)).toMatchObject({ type: 'submit', request: { tools: { list: tools } } });
  });

  test('has null for no content', async () => {
    const { engine } = await start({ script: { events: CALLS.slice(1), reason: 'tool_calls' } });
    const { choices } = await engine.chat.completions.create({ messages, tools });
    expect(choices[0]?.message.content).toBeNull();
  });

  test('gives back what is no call, with a note', async () => {
    const error = { code: 'incomplete', message: 'why' } as const;
    const bad: ScriptedEvent = { kind: 'malformed', index: 0, text: '<tool_call>{"na', error };
    const { engine } = await start({ script: { events: [...CALLS.slice(0, 3), bad], reason: 'length' } });
    const { choices } = await engine.chat.completions.create({ messages, tools });
    expect(choices[0]).toEqual({
      index: 0,
      message: { role: 'assistant', content: 'I look.<tool_call>{"na', refusal: null },
      finish_reason: 'length',
      logprobs: null,
      tool_call_error: { ...error, index: 0 },
    });
  });
});

describe('a stream', () => {
  test('has a call once and then its arguments as they come', async () => {
    const { engine } = await start({ script: { events: CALLS, reason: 'tool_calls' } });
    const stream = await engine.chat.completions.create({ messages, tools, stream: true });
    const choices = [];
    for await (const chunk of stream) choices.push(chunk.choices[0]);
    expect(choices.map((choice) => choice?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'I look.' },
      { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"city": ' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Bern"}' } }] },
      { tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'now', arguments: '' } }] },
      { tool_calls: [{ index: 1, function: { arguments: '{}' } }] },
      {},
    ]);
    expect(choices.at(-1)?.finish_reason).toBe('tool_calls');
  });

  test('says where what came is no call', async () => {
    const error = { code: 'malformed', message: 'why' } as const;
    const events: ScriptedEvent[] = [{ kind: 'malformed', index: null, text: '<tool_call>x', error }];
    const { engine } = await start({ script: { events, reason: 'stop' } });
    const stream = await engine.chat.completions.create({ messages, tools, stream: true });
    const choices = [];
    for await (const chunk of stream) choices.push(chunk.choices[0]);
    expect(choices[1]).toMatchObject({
      delta: { content: '<tool_call>x' },
      tool_call_error: { ...error, index: null },
    });
    expect(choices.at(-1)?.finish_reason).toBe('stop');
  });
});

test('toolFormat is one of those that are known', async () => {
  const worker = new FakeWorker();
  const load = (toolFormat: unknown) =>
    Engine.load(fakeModel(), { createWorker: () => worker.asWorker, toolFormat: toolFormat as 'hermes' });
  await expect(load('xml')).rejects.toMatchObject({
    code: 'bad_request',
    message: expect.stringContaining('toolFormat'),
  });
  await load('llama3');
  const sent = worker.received.find((message) => message.type === 'load');
  expect(sent).toMatchObject({ options: { toolFormat: 'llama3' } });
});
