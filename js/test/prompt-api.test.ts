import { afterEach, beforeEach, expect, test } from 'vitest';
import { Engine } from '../src/index.js';
import { createLanguageModel, installLanguageModel, type LanguageModelStatic } from '../src/prompt-api.js';
import { toConstraint } from '../src/prompt-input.js';
import { FakeWorker, fakeModel } from './fake.js';

let worker: FakeWorker;
let engine: Engine;
let LanguageModel: LanguageModelStatic;

/** The template is a line for each message, a token for each letter, and the opening of an answer. */
async function load(contextLength = 1000): Promise<Engine> {
  const info = { ...new FakeWorker().engine.info(), contextLength };
  const applyTemplate = (messages: unknown): string => {
    const lines = (messages as { role: string; content: string }[]).map(({ role, content }) => `${role}:${content}\n`);
    return `${lines.join('')}assistant:`;
  };
  worker = new FakeWorker({ engine: { info: () => info, applyTemplate } });
  return Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
}

/** Messages of every request that was answered, and of those that were only computed. */
const asked = (isWarm: boolean): unknown[] =>
  worker.received.flatMap((message) => {
    if (message.type !== 'submit' || (message.request.prefillOnly === true) !== isWarm) return [];
    return 'messages' in message.request.input ? [message.request.input.messages.map(({ content }) => content)] : [];
  });

beforeEach(async () => {
  engine = await load();
  LanguageModel = createLanguageModel(engine);
});
afterEach(() => engine.unload());

test('a conversation: what was said before is said again, and its tokens are counted', async () => {
  const initialPrompts = [{ role: 'system' as const, content: [{ type: 'text' as const, value: 'Be brief' }] }];
  const session = await LanguageModel.create({ initialPrompts });
  expect([session.contextWindow, session.contextUsage]).toEqual([1000, 'system:Be brief\n'.length]);
  expect(await session.prompt('Hi')).toBe('Hello');
  expect(await session.measureContextUsage('Once more')).toBeGreaterThan(0);
  expect(await session.prompt([{ role: 'user', content: 'More' }])).toBe('Hello');
  expect(asked(true)).toEqual([['Be brief']]);
  expect(asked(false)).toEqual([
    ['Be brief', 'Hi'],
    ['Be brief', 'Hi', 'Hello', 'More'],
  ]);
  expect(session.contextUsage).toBe(8);
});

test('streams come piece by piece, one call of a session after another', async () => {
  const session = await LanguageModel.create();
  const [first, second] = [session.promptStreaming('One'), session.prompt('Two')];
  const pieces: string[] = [];
  for await (const piece of first) pieces.push(piece);
  expect(pieces).toEqual(['H', 'e', 'l', 'l', 'o']);
  await second;
  expect(asked(false)).toEqual([['One'], ['One', 'Hello', 'Two']]);
});

test('a clone goes its own way', async () => {
  const session = await LanguageModel.create();
  await session.append('One');
  const clone = await session.clone();
  expect(clone.contextUsage).toBe(session.contextUsage);
  await clone.prompt('Two');
  await session.prompt('Three');
  expect(asked(true)).toEqual([['One']]);
  expect(asked(false)).toEqual([
    ['One', 'Two'],
    ['One', 'Three'],
  ]);
});

test('an abort takes its prompt out of the session, also before its turn', async () => {
  const session = await LanguageModel.create();
  const abort = new AbortController();
  const first = session.prompt('One', { signal: abort.signal });
  const queued = session.prompt('Two');
  abort.abort(new Error('enough'));
  await expect(first).rejects.toThrow('enough');
  await queued;
  const stream = session.promptStreaming('Three');
  await stream.cancel();
  await session.prompt('Four');
  expect(asked(false).at(-1)).toEqual(['Two', 'Hello', 'Four']);
});

test('destroy ends what is under way and what comes later', async () => {
  const session = await LanguageModel.create();
  const pending = session.prompt('One');
  session.destroy();
  await expect(pending).rejects.toMatchObject({ name: 'AbortError' });
  await expect(session.prompt('Two')).rejects.toMatchObject({ name: 'AbortError' });
  await expect(session.clone()).rejects.toMatchObject({ name: 'AbortError' });
  expect(engine.ended).toBeNull();
});

test('what no longer fits: the oldest turns go, never the system message, and an event says so', async () => {
  await engine.unload();
  engine = await load(100);
  LanguageModel = createLanguageModel(engine);
  const session = await LanguageModel.create({ initialPrompts: [{ role: 'system', content: 'S' }] });
  let overflows = 0;
  session.oncontextoverflow = () => {
    overflows += 1;
  };
  await session.prompt('a'.repeat(30));
  await session.prompt('b'.repeat(30));
  expect(overflows).toBe(1);
  expect(asked(false).at(-1)).toEqual(['S', 'b'.repeat(30)]);
  const tooLong = session.prompt('c'.repeat(100));
  await expect(tooLong).rejects.toMatchObject({ name: 'QuotaExceededError', quota: 100 });
  await session.prompt('d');
  expect(asked(false).at(-1)).toEqual(['S', 'b'.repeat(30), 'Hello', 'd']);
  await expect(
    LanguageModel.create({ initialPrompts: [{ role: 'user', content: 'x'.repeat(100) }] }),
  ).rejects.toMatchObject({
    name: 'QuotaExceededError',
  });
});

test('sampling: by number, by name, and within the limits', async () => {
  expect(await LanguageModel.params()).toEqual({
    defaultTopK: 256,
    maxTopK: 256,
    defaultTemperature: 1,
    maxTemperature: 2,
  });
  const greedy = await LanguageModel.create({ samplingMode: 'most-predictable' });
  await greedy.prompt('Hi');
  const given = await LanguageModel.create({ temperature: 9, topK: 3.7 });
  await given.prompt('Hi');
  expect([given.temperature, given.topK, given.samplingMode]).toEqual([2, 3, 'balanced']);
  const sampling = worker.received.flatMap((message) => (message.type === 'submit' ? [message.request.sampling] : []));
  expect(sampling).toMatchObject([
    { temperature: 0, topK: 0 },
    { temperature: 2, topK: 3 },
  ]);
  await expect(LanguageModel.create({ topK: 0 })).rejects.toThrow(RangeError);
});

test.each<[string, unknown, string]>([
  [
    'a system message in the middle',
    [
      { role: 'user', content: '' },
      { role: 'system', content: '' },
    ],
    'TypeError',
  ],
  ['an unknown role', [{ role: 'tool', content: '' }], 'TypeError'],
  ['an image', [{ role: 'user', content: [{ type: 'image', value: new Blob() }] }], 'NotSupportedError'],
  ['a text that is none', [{ role: 'user', content: [{ type: 'text', value: 1 }] }], 'TypeError'],
  ['a prefix', [{ role: 'assistant', content: '', prefix: true }], 'NotSupportedError'],
  ['a prefix of the user', [{ role: 'user', content: '', prefix: true }], 'SyntaxError'],
])('%s is refused', async (_, input, name) => {
  const session = await LanguageModel.create();
  await expect(session.prompt(input as string)).rejects.toMatchObject({ name });
  await expect(session.append(input as string)).rejects.toMatchObject({ name });
});

test('constraints become fields of a request', async () => {
  const schema = { type: 'object' };
  expect(toConstraint({ responseConstraint: schema })).toEqual({
    response_format: { type: 'json_schema', json_schema: { name: 'response', schema, strict: true } },
  });
  expect(toConstraint({ responseConstraint: /^(yes|no)$/u })).toEqual({ regex: '(yes|no)' });
  expect(toConstraint({ responseConstraint: /\d+\$/ })).toEqual({ regex: '\\d+\\$' });
  const session = await LanguageModel.create();
  const prompt = (responseConstraint: unknown): Promise<string> =>
    session.prompt('Hi', { responseConstraint: responseConstraint as object });
  await expect(prompt('text')).rejects.toThrow(TypeError);
  await expect(prompt(/a/i)).rejects.toMatchObject({ name: 'NotSupportedError' });
  await expect(session.prompt('Hi', { omitResponseConstraintInput: true })).rejects.toThrow(TypeError);
});

test('an engine that is loaded when the first session is made', async () => {
  let finish: (engine: Engine) => void = () => undefined;
  const api = createLanguageModel(({ onProgress }) => {
    onProgress?.({ phase: 'weights', loadedBytes: 1, totalBytes: 4 });
    return new Promise((resolve) => {
      finish = resolve;
    });
  });
  expect([await api.availability(), await api.params()]).toEqual(['downloadable', null]);
  const loaded: number[] = [];
  const monitor = (target: EventTarget): void =>
    target.addEventListener('downloadprogress', (event) => loaded.push((event as ProgressEvent).loaded));
  const first = api.create({ monitor });
  const aborted = api.create({ signal: AbortSignal.abort(new Error('no')) });
  await expect(aborted).rejects.toThrow('no');
  expect(await api.availability()).toBe('downloading');
  finish(engine);
  await first;
  expect(loaded).toEqual([0, 0.25, 1]);
  expect(await api.availability()).toBe('available');
});

test('what it cannot do, and a device that cannot', async () => {
  expect(await LanguageModel.availability({ expectedInputs: [{ type: 'image' }] })).toBe('unavailable');
  await expect(LanguageModel.availability({ expectedInputs: [{ type: 'text', languages: ['?'] }] })).rejects.toThrow(
    RangeError,
  );
  const api = createLanguageModel((options) => Engine.load(fakeModel(), options));
  await expect(api.create()).rejects.toMatchObject({ name: 'NotSupportedError', cause: { code: 'no_webgpu' } });
  expect(await api.availability()).toBe('unavailable');
  await engine.unload();
  expect(await LanguageModel.availability()).toBe('unavailable');
  await expect(LanguageModel.create()).rejects.toMatchObject({ name: 'AbortError' });
});

test('it is global only where that was asked, and never in place of another unless that was asked too', () => {
  const has = (): unknown => Reflect.get(globalThis, 'LanguageModel');
  expect(has()).toBeUndefined();
  const uninstall = installLanguageModel(engine);
  const installed = has();
  expect(installed).toBeDefined();
  installLanguageModel(engine)();
  expect(has()).toBe(installed);
  const restore = installLanguageModel(engine, { replace: true });
  expect(has()).not.toBe(installed);
  restore();
  expect(has()).toBe(installed);
  uninstall();
  expect(has()).toBeUndefined();
});
