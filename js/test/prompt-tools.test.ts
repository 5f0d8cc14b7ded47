/** Tools of the Prompt API, and counting where a template wants a question first. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Engine } from '../src/index.js';
import { createLanguageModel, type LanguageModelStatic } from '../src/prompt-api.js';
import type { EngineMessage, EngineRequest } from '../src/protocol.js';
import type { ChatTool } from '../src/types.js';
import { FakeWorker, fakeModel, type Script, type ScriptedEvent } from './fake.js';

let worker: FakeWorker;
let engine: Engine;
let LanguageModel: LanguageModelStatic;
/** What the model answers to a conversation. */
let answer: (request: EngineRequest) => Script | undefined;

const bad = (message: string): object => ({ code: 'bad_request', message });

/** As many models have it: the system prompt is a part of the first question, and there is no prompt without one. */
function applyTemplate(messages: EngineMessage[], tools: ChatTool[] | undefined): string {
  const told = tools === undefined ? '' : `tools:${tools.map((tool) => tool.function.name)}\n`;
  const [first, ...others] = messages;
  const system = first?.role === 'system' ? `${first.content}\n` : '';
  const rest = first?.role === 'system' ? others : messages;
  if (rest[0]?.role !== 'user') throw bad('a question is needed first');
  return `${system}${told}${rest.map(({ role, content }) => `${role}:${content}\n`).join('')}assistant:`;
}

beforeEach(async () => {
  const info = { ...new FakeWorker().engine.info(), contextLength: 1000 };
  answer = () => undefined;
  worker = new FakeWorker({ engine: { info: () => info, applyTemplate }, script: (request) => answer(request) });
  engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  LanguageModel = createLanguageModel(engine);
});
afterEach(() => engine.unload());

/** The requests that were answered. */
const asked = (): EngineRequest[] =>
  worker.received.flatMap((message) => {
    return message.type === 'submit' && message.request.prefillOnly !== true ? [message.request] : [];
  });
const said = ({ input }: EngineRequest): EngineMessage[] => ('messages' in input ? input.messages : []);

const INPUT = { type: 'object', properties: { city: { type: 'string' } } };
/** A tool that tells of a city what it is given. */
const weather = (execute: (input: { city: string }) => unknown) => ({
  ...{ name: 'weather', description: 'The weather of a city.', inputSchema: INPUT },
  execute,
});

const call = (index: number, json: string): ScriptedEvent[] => [
  { kind: 'call', index, id: `call-${index}`, name: 'weather' },
  { kind: 'arguments', index, text: json.slice(0, 3) },
  { kind: 'arguments', index, text: json.slice(3) },
];
/** Calls as long as nothing came back, then says what came. */
const callFirst =
  (...events: ScriptedEvent[]) =>
  (request: EngineRequest): Script => {
    const found = said(request).filter(({ role }) => role === 'tool');
    if (found.length === 0) return { events, reason: 'tool_calls' };
    const text = found.map(({ content }) => content).join(' and ');
    return { events: [{ kind: 'text', text: `It is ${text}.` }], reason: 'stop' };
  };

describe('tools', () => {
  test('are called, and the model told, until it answers', async () => {
    answer = callFirst({ kind: 'text', text: 'Wait. ' }, ...call(0, '{"city":"Bern"}'), ...call(1, '{"city":"Rome"}'));
    const running: string[] = [];
    const execute = vi.fn(async ({ city }: { city: string }) => {
      running.push(city);
      // Both run at the same time.
      await vi.waitFor(() => expect(running).toHaveLength(2));
      return city === 'Bern' ? 'rain' : { sun: true };
    });
    const expected = { expectedInputs: [{ type: 'tool-response' }], expectedOutputs: [{ type: 'tool-call' }] };
    const session = await LanguageModel.create({ tools: [weather(execute)], ...expected });
    expect(await session.prompt('Weather?')).toBe('Wait. It is rain and {"sun":true}.');
    expect(execute.mock.calls).toEqual([[{ city: 'Bern' }], [{ city: 'Rome' }]]);
    const [first, second] = asked();
    const parameters = INPUT;
    const list = [
      { type: 'function', function: { name: 'weather', description: 'The weather of a city.', parameters } },
    ];
    expect(first?.tools).toEqual({ list, isRequired: false, isParallel: true });
    expect(second?.tools).toEqual(first?.tools);
    const calls = ['Bern', 'Rome'].map((city, index) => {
      return { id: `call-${index}`, type: 'function', function: { name: 'weather', arguments: `{"city":"${city}"}` } };
    });
    const conversation = [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: 'Wait. ', tool_calls: calls },
      { role: 'tool', content: 'rain', tool_call_id: 'call-0' },
      { role: 'tool', content: '{"sun":true}', tool_call_id: 'call-1' },
    ];
    expect(second === undefined ? [] : said(second)).toEqual(conversation);
    // All of it is a part of the conversation, also of a clone.
    answer = () => undefined;
    const clone = await session.clone();
    await clone.prompt('Thanks');
    const last = asked().at(-1) as EngineRequest;
    expect(said(last).slice(0, 4)).toEqual(conversation);
    expect(said(last).slice(4)).toMatchObject([{ content: 'It is rain and {"sun":true}.' }, { content: 'Thanks' }]);
    expect(last.tools).toEqual(first?.tools);
  });

  test('that fail say so to the model', async () => {
    answer = callFirst(...call(0, '{"city":"Bern"}'), ...call(1, '{"city"'));
    const execute = (): never => {
      throw new Error('no such city');
    };
    const session = await LanguageModel.create({ tools: [weather(execute)] });
    expect(await session.prompt('Weather?')).toMatch(/^It is Error: no such city and Error: .*JSON/);
  });

  test('calls that cannot be read are text', async () => {
    const error = { code: 'malformed', message: 'no JSON' } as const;
    const events: ScriptedEvent[] = [...call(0, '{"c'), { kind: 'malformed', index: 0, text: '<call>', error }];
    answer = () => ({ events, reason: 'stop' });
    const execute = vi.fn();
    const session = await LanguageModel.create({ tools: [weather(execute)] });
    expect(await session.prompt('Weather?')).toBe('<call>');
    expect(execute).not.toHaveBeenCalled();
  });

  test('a model that never stops calling is stopped', async () => {
    answer = () => ({ events: call(0, '{"city":"Bern"}'), reason: 'tool_calls' });
    const submit = worker.engine.submit.bind(worker.engine);
    // The fake has a short context.
    worker.engine.submit = (id, request, at) => submit(id, { ...request, input: { text: '' } }, at);
    const execute = vi.fn(() => '');
    const session = await LanguageModel.create({ tools: [weather(execute)] });
    await expect(session.prompt('Weather?')).rejects.toThrow('still calls tools after 16 rounds');
    expect(execute).toHaveBeenCalledTimes(16);
    // Nothing of it stays.
    answer = () => undefined;
    await session.prompt('Hi');
    expect(said(asked().at(-1) as EngineRequest)).toEqual([{ role: 'user', content: 'Hi' }]);
  });

  test('an abort need not wait for them', async () => {
    answer = callFirst(...call(0, '{"city":"Bern"}'));
    const abort = new AbortController();
    const execute = (): Promise<never> => {
      abort.abort(new Error('enough'));
      return new Promise(() => undefined);
    };
    const session = await LanguageModel.create({ tools: [weather(execute)] });
    await expect(session.prompt('Weather?', { signal: abort.signal })).rejects.toThrow('enough');
  });

  test('are counted, computed ahead, and leave room for a system message', async () => {
    const tools = [weather(() => '')];
    const session = await LanguageModel.create({ tools });
    expect(session.contextUsage).toBe('tools:weather\n'.length);
    await session.append([{ role: 'system', content: 'S' }]);
    const warmed = worker.received.at(-1);
    expect(warmed).not.toMatchObject({ type: 'submit', request: { tools: undefined } });
    expect(session.contextUsage).toBe('S\ntools:weather\n'.length);
    const long = { ...weather(() => ''), name: 'w'.repeat(1000) };
    await expect(LanguageModel.create({ tools: [long] })).rejects.toMatchObject({ name: 'NotSupportedError' });
  });

  test.each([
    ['no list', 'weather', 'TypeError'],
    ['one that is none', [{}], 'TypeError'],
    ['one without a schema', [{ ...weather(() => ''), inputSchema: undefined }], 'TypeError'],
    ['one with no function', [{ ...weather(() => ''), execute: 'x' }], 'TypeError'],
    ['one that the page would have to run', [{ ...weather(() => ''), execute: undefined }], 'NotSupportedError'],
    ['two of a name', [weather(() => ''), weather(() => '')], 'NotSupportedError'],
  ])('refused: %s', async (_, tools, name) => {
    const options = { tools: tools as never };
    await expect(LanguageModel.create(options)).rejects.toMatchObject({ name });
    if (name === 'TypeError') await expect(LanguageModel.availability(options)).rejects.toThrow(TypeError);
    else expect(await LanguageModel.availability(options)).toBe('unavailable');
  });

  test('of a model that cannot be told of them', async () => {
    const tools = [weather(() => '')];
    expect(await LanguageModel.availability({ tools })).toBe('available');
    expect(await LanguageModel.availability({ expectedOutputs: [{ type: 'tool-call' }] })).toBe('unavailable');
    worker.engine.applyTemplate = (messages, told) => {
      if (told !== undefined) throw bad('tools: the format is not known');
      return applyTemplate(messages as EngineMessage[], told);
    };
    expect(await LanguageModel.availability({ tools })).toBe('unavailable');
    await expect(LanguageModel.create({ tools })).rejects.toMatchObject({ name: 'NotSupportedError' });
    expect((await LanguageModel.create()).contextUsage).toBe(0);
  });
});

test('a system prompt alone is counted where a template wants a question too', async () => {
  const initialPrompts = [{ role: 'system' as const, content: 'Be brief' }];
  const session = await LanguageModel.create({ initialPrompts });
  expect(session.contextUsage).toBe('Be brief\n'.length);
  expect(await session.measureContextUsage('Hi')).toBe('user:Hi\nassistant:'.length);
  expect(await session.prompt('Hi')).toBe('Hello');
  expect(said(asked()[0] as EngineRequest)).toEqual([...initialPrompts, { role: 'user', content: 'Hi' }]);
  const long = [{ role: 'system' as const, content: 'x'.repeat(1000) }];
  await expect(LanguageModel.create({ initialPrompts: long })).rejects.toMatchObject({ name: 'QuotaExceededError' });
});
