/** The worker's protocol: who speaks, and what is refused. */

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { isResultOf } from '../src/guard.js';
import type { FromWorker } from '../src/protocol.js';
import { VERSION } from '../src/version.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { fakeEnvironment } from './fake.js';
import { FakeEngine } from './fake-engine.js';
import {
  byHand,
  HELLO,
  LOAD,
  POLICY,
  RawWorker,
  request,
  SCHEMA,
  submitOf,
  TOOLS,
  watchRejections,
} from './protocol-setup.js';

watchRejections();

const MESSAGES = [{ role: 'user', content: 'Hi' }];
const NAMELESS = { type: 'function', function: { parameters: {} } };

describe('versions', () => {
  test('the package’s is that of package.json', () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(VERSION).toBe(version);
  });

  test.each([
    ['of another version', { ...HELLO, version: '0.0.9' }],
    ['of another protocol', { ...HELLO, protocol: 1 }],
    ['that does not say', { type: 'result', id: 1, value: null }],
  ])('a worker %s is an error that says what to do', async (_, first) => {
    const { client, tell } = byHand();
    const call = client.call('metrics', {});
    tell(first);
    await expect(call).rejects.toMatchObject({
      code: 'version_mismatch',
      message: expect.stringContaining('Reload the page'),
    });
    expect(client.closed).toMatchObject({ code: 'version_mismatch' });
  });

  test.each([undefined, { ...HELLO, version: '9.9.9' }])(
    'a page that says %j gets no answers but that',
    async (hello) => {
      const worker = new RawWorker();
      if (hello !== undefined) worker.send(hello);
      expect(await worker.answer(LOAD, 1)).toMatchObject({ type: 'error', error: { code: 'version_mismatch' } });
      worker.send({ type: 'cancel', request: 1 });
      expect(worker.loop.numIgnored).toBe(1);
      // Once it does, all is well.
      worker.send(HELLO);
      expect(await worker.answer({ ...LOAD, id: 2 }, 2)).toMatchObject({ type: 'result', value: { id: 'fake' } });
    },
  );
});

describe('the worker', () => {
  test.each([
    [{ type: 'nonsense', id: 5 }, 'unknown message "nonsense"'],
    [{ type: 'toString', id: 5 }, 'unknown message "toString"'],
    [{ id: 5 }, 'without a type'],
    [{ type: 'tokenize', id: 5 }, 'tokenize: text'],
    [{ type: 'tokenize', id: 5, text: 3, addSpecial: false, parseSpecial: false }, 'tokenize: text'],
    [{ type: 'detokenize', id: 5, ids: [1, -1], skipSpecial: false }, 'detokenize: ids'],
    [{ type: 'detokenize', id: 5, ids: new Array(2), skipSpecial: false }, 'detokenize: ids'],
    [{ type: 'submit', id: 5, request: { ...request(), numChoices: 0 }, name: 'x' }, 'submit: request'],
    [{ type: 'submit', id: 5, request: { ...request(), input: { text: 3 } }, name: 'x' }, 'submit: request'],
    [submitOf({ kind: 'regex' }), 'submit: request'],
    [submitOf({ kind: 'xml', pattern: 'a', field: 'regex' }), 'submit: request'],
    [submitOf({ kind: 'lark', grammar: 'start: "a"', schemas: [{}], field: 'grammar' }), 'submit: request'],
    [submitOf({ kind: 'json_schema', ...SCHEMA, json: {} }), 'submit: request'],
    [submitOf(null), 'submit: request'],
    [{ type: 'cacheExplain', id: 5, request: { ...request(), constraint: 'a+' } }, 'cacheExplain: request'],
    [
      { type: 'submit', id: 5, request: { ...request(), tools: { ...TOOLS, list: [{}] } }, name: 'x' },
      'submit: request',
    ],
    [{ type: 'submit', id: 5, request: { ...request(), logprobs: -1 }, name: 'x' }, 'submit: request'],
    [{ type: 'cachePin', id: 5, salt: '', prefix: { messages: MESSAGES, tools: [] } }, 'cachePin: prefix'],
    [{ type: 'cacheUnpin', id: 5, salt: '', prefix: { messages: MESSAGES, tools: TOOLS } }, 'cacheUnpin: prefix'],
    [{ type: 'cacheEvict', id: 5, salt: '', prefix: { ids: [1], tools: TOOLS.list } }, 'cacheEvict: prefix'],
    [{ type: 'cacheSave', id: 5, salt: '', prefix: { messages: MESSAGES, tools: [NAMELESS] } }, 'cacheSave: prefix'],
    [
      { type: 'applyTemplate', id: 5, messages: MESSAGES, tools: 'weather', addGenerationPrompt: true },
      'applyTemplate: tools',
    ],
    [{ type: 'cachePolicy', id: 5 }, 'cachePolicy: policy'],
    [{ type: 'cachePolicy', id: 5, policy: { kind: 'fifo' } }, 'cachePolicy: policy'],
    [{ type: 'cachePolicy', id: 5, policy: { ...POLICY, nextTurnTokens: -1 } }, 'cachePolicy: policy'],
    [{ type: 'load', id: 5, source: {}, options: {}, store: false, group: null }, 'load: source'],
    [{ type: 'cacheRestore', id: 5, cache: request().cache }, 'cacheRestore: data'],
  ])('answers %j with an error', async (message, text) => {
    const worker = new RawWorker();
    worker.send(HELLO);
    const error = { code: 'bad_request', message: expect.stringContaining(text) };
    expect(await worker.answer(message, 5)).toMatchObject({ type: 'error', error });
    expect(worker.loop.numIgnored).toBe(0);
  });

  test.each([
    submitOf({ kind: 'regex', pattern: 'a+', field: 'regex' }),
    submitOf({ kind: 'lark', grammar: 'start: @a', schemas: [SCHEMA], field: 'grammar' }),
    submitOf({ kind: 'json_schema', ...SCHEMA }),
    { type: 'cachePolicy', id: 5, policy: { kind: 'lru' } },
    { type: 'cachePolicy', id: 5, policy: POLICY },
    { type: 'cachePin', id: 5, salt: '', prefix: { messages: MESSAGES, tools: TOOLS.list } },
  ])('takes %j', async (message) => {
    const worker = new RawWorker();
    worker.send(HELLO);
    await worker.answer(LOAD, 1);
    const answer = await worker.answer(message, 5);
    expect(answer).toMatchObject({ type: 'result' });
    const { type } = message as { type: 'submit' | 'cachePolicy' | 'cachePin' };
    expect(isResultOf(type, (answer as { value: unknown }).value)).toBe(true);
    expect(isResultOf(type, -1)).toBe(false);
  });

  test.each([
    null,
    undefined,
    7,
    'hello',
    [],
    new Map(),
    { type: 'nonsense' },
    { type: 'tokenize', id: -1, text: 'a', addSpecial: false, parseSpecial: false },
    { type: 'cancel', request: 'one' },
    { type: 'stepTarget', ms: Number.NaN },
    { type: 'connect' },
    { type: 'connect', via: { port: 1 } },
    { ...HELLO, life: 3 },
  ])('ignores and counts %j', async (message) => {
    const worker = new RawWorker();
    worker.send(HELLO);
    worker.send(message);
    expect(worker.loop.numIgnored).toBe(1);
    expect(await worker.answer(LOAD, 1)).toMatchObject({ type: 'result' });
  });

  test('answers a request twice under one id once, and cancels of what is unknown do nothing', async () => {
    const worker = new RawWorker();
    worker.send(HELLO);
    await worker.answer(LOAD, 1);
    for (const id of [0, 2, 77]) worker.send({ type: 'cancel', request: id });
    const submit = { type: 'submit', id: 2, request: request({ n: 2 }), name: 'x' };
    worker.send(submit);
    worker.send(submit);
    const isOver = (): boolean => worker.posted.filter((message) => 'id' in message && message.id === 2).length === 2;
    await vi.waitFor(() => expect([isOver(), worker.engine.running.size]).toEqual([true, 0]));
    const answers = worker.posted.filter((message) => 'id' in message && message.id === 2);
    expect(answers).toMatchObject([{ type: 'result' }, { type: 'error', error: { code: 'bad_request' } }]);
    const events = worker.posted.flatMap((message) => (message.type === 'events' ? message.events : []));
    expect(events.filter(({ kind }) => kind === 'finished')).toHaveLength(2);
    expect(events.every((event) => event.request === 2)).toBe(true);
    expect(worker.engine.cancelled).toEqual([]);
    // Its id is free again.
    expect(await worker.answer({ ...submit, id: 3 }, 3)).toMatchObject({ type: 'result' });
  });

  test('answers what came before it ran', async () => {
    const engine = new FakeEngine({});
    const posted: FromWorker[] = [];
    const loop = new WorkerLoop(fakeEnvironment({}, engine));
    const send = loop.connect((message) => posted.push(message));
    for (const message of [HELLO, LOAD, { type: 'metrics', id: 2 }]) send(message);
    await new Promise((resolve) => setTimeout(resolve, 5));
    void loop.run();
    await vi.waitFor(() => expect(posted.filter(({ type }) => type === 'result')).toHaveLength(2));
  });

  test('waits for no frame: a hidden page has none', () => {
    const folder = new URL('../src/', import.meta.url);
    const sources = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'));
    expect(sources.filter((text) => /requestAnimationFrame|requestIdleCallback/.test(text))).toEqual([]);
  });

  test('answers pings while the GPU works, and calls after unload', async () => {
    const worker = new RawWorker();
    worker.send(HELLO);
    await worker.answer(LOAD, 1);
    worker.engine.logits = () => new Promise(() => undefined);
    worker.send({ type: 'logits', id: 2, ids: [1], positions: [0] });
    await new Promise((resolve) => setTimeout(resolve, 5));
    worker.send({ type: 'ping' });
    expect(worker.posted.at(-1)).toEqual({ type: 'pong' });
    const other = new RawWorker();
    other.send(HELLO);
    await other.answer(LOAD, 1);
    await other.answer({ type: 'unload', id: 2 }, 2);
    expect(await other.answer({ type: 'metrics', id: 3 }, 3)).toMatchObject({ error: { code: 'bad_request' } });
    expect(await other.answer({ ...LOAD, id: 4 }, 4)).toMatchObject({ type: 'result' });
  });
});

describe('the page', () => {
  test('refuses a malformed answer, and counts what is about nothing', async () => {
    const { client, sent, tell } = byHand();
    tell(HELLO);
    const calls = [
      client.call('tokenize', { text: 'a', addSpecial: false, parseSpecial: false }),
      client.call('metrics', {}),
    ];
    const ids = sent.flatMap((message) => ('id' in message ? [message.id] : []));
    tell({ type: 'result', id: ids[0], value: ['a'] });
    await expect(calls[0]).rejects.toMatchObject({
      code: 'worker_crashed',
      message: expect.stringContaining('tokenize'),
    });
    for (const junk of [
      null,
      3,
      {},
      { type: 'x' },
      { type: 'result', id: 99, value: 1 },
      { type: 'error', id: 99, error: {} },
    ]) {
      tell(junk);
    }
    expect(client.numIgnored).toBe(6);
    tell({ type: 'error', id: ids[1], error: { code: 'no such code', message: 'x' } });
    await expect(calls[1]).rejects.toMatchObject({ code: 'worker_crashed' });
    expect(client.isWaiting).toBe(false);
  });

  test('fails a request with a malformed event, and tells the worker', async () => {
    const { client, sent, tell } = byHand();
    tell(HELLO);
    const generating = client.generate(request(), undefined);
    const id = (sent.at(-1) as { id: number }).id;
    tell({ type: 'result', id, value: { promptTokens: 3 } });
    const generation = await generating;
    tell({
      type: 'events',
      events: [null, { kind: 'text', request: 99, choice: 0, text: 'x' }, { kind: 'text', request: id }],
    });
    await expect(generation.next()).rejects.toMatchObject({ code: 'worker_crashed' });
    expect(sent.at(-1)).toEqual({ type: 'cancel', request: id });
  });
});
