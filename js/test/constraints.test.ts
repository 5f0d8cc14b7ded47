import { describe, expect, test, vi } from 'vitest';
import { Engine } from '../src/engine.js';
import { PagewiseError } from '../src/errors.js';
import type { GrammarModule } from '../src/grammars.js';
import { type FromWorker, PROTOCOL_VERSION } from '../src/protocol.js';
import { checkChatRequest, checkTextRequest } from '../src/request.js';
import type { ChatCompletionCreateParamsNonStreaming } from '../src/types.js';
import { VERSION } from '../src/version.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { type FakeOptions, FakeWorker, fakeEnvironment, fakeModel } from './fake.js';
import { FakeEngine } from './fake-engine.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;
const constraintOf = (fields: object) => checkChatRequest({ messages, ...fields }, []).engineRequest.constraint;

function refusal(fields: object): string {
  try {
    constraintOf(fields);
  } catch (error) {
    expect((error as PagewiseError).code).toBe('bad_request');
    return (error as PagewiseError).message;
  }
  throw new Error('was not refused');
}

const schema = { type: 'object', properties: { z: { type: 'string' }, a: { type: 'string' } } };
const withSchema = (json_schema: object) => ({ response_format: { type: 'json_schema', json_schema } });

describe('response_format, grammar and regex', () => {
  test('text is no constraint', () => {
    for (const fields of [{}, { response_format: null }, { response_format: { type: 'text' } }, { grammar: null }]) {
      expect(constraintOf(fields)).toBeUndefined();
    }
  });

  test('become what the engine takes', () => {
    const field = 'response_format.json_schema.schema';
    for (const strict of [undefined, null, true, false]) {
      expect(constraintOf(withSchema({ name: 'a-b_1', schema, ...(strict === undefined ? {} : { strict }) }))).toEqual({
        kind: 'json_schema',
        name: 'a-b_1',
        json: JSON.stringify(schema),
        field,
      });
    }
    expect(constraintOf({ response_format: { type: 'json_object' } })).toMatchObject({
      kind: 'json_schema',
      json: '{"type":"object"}',
      field: 'response_format',
    });
    expect(constraintOf({ regex: 'a+' })).toEqual({ kind: 'regex', pattern: 'a+', field: 'regex' });
    const grammar = 'start: "a"';
    expect(checkTextRequest({ prompt: 'x', grammar }, []).engineRequest.constraint).toEqual({
      kind: 'lark',
      grammar,
      schemas: [],
      field: 'grammar',
    });
  });

  test('are refused by name', () => {
    for (const [fields, name] of [
      [{ response_format: 'json' }, 'response_format:'],
      [{ response_format: { type: 'xml' } }, 'response_format.type:'],
      [{ response_format: { type: 'json_object', schema } }, 'response_format.schema'],
      [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
      [withSchema({ schema }), 'response_format.json_schema.name:'],
      [withSchema({ name: 'a b', schema }), 'response_format.json_schema.name:'],
      [withSchema({ name: 'a' }), 'response_format.json_schema.schema:'],
      [withSchema({ name: 'a', schema: [] }), 'response_format.json_schema.schema:'],
      [withSchema({ name: 'a', schema: new Map() }), 'response_format.json_schema.schema:'],
      [withSchema({ name: 'a', schema: { const: 1n } }), 'response_format.json_schema.schema:'],
      [withSchema({ name: 'a', schema: { toJSON: () => undefined } }), 'response_format.json_schema.schema:'],
      [withSchema({ name: 'a', schema, strict: 1 }), 'response_format.json_schema.strict:'],
      [withSchema({ name: 'a', schema, lenient: true }), 'response_format.json_schema.lenient'],
      [{ grammar: '' }, 'grammar:'],
      [{ regex: 1 }, 'regex:'],
      [{ regex: 'a', grammar: 'start: "a"' }, 'regex: not together with grammar'],
      [{ regex: 'a', response_format: { type: 'json_object' } }, 'regex: not together with response_format'],
      [{ regex: 'a', allowed_token_ids: [1] }, 'allowed_token_ids: not together with regex'],
    ] as const) {
      expect(refusal(fields)).toContain(name);
    }
    expect(constraintOf({ regex: 'a', response_format: { type: 'text' } })).toMatchObject({ kind: 'regex' });
  });
});

describe('the module that compiles constraints', () => {
  const request: ChatCompletionCreateParamsNonStreaming = { messages, regex: 'a+' };
  const start = async (options: FakeOptions) => {
    const worker = new FakeWorker(options);
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    return { worker, engine };
  };
  const MODULE = { createGrammars: null };

  test('is loaded once, with the first request that needs it', async () => {
    let numLoaded = 0;
    const loadGrammars = async () => {
      numLoaded += 1;
      return MODULE;
    };
    const { worker, engine } = await start({ loadGrammars });
    await engine.chat.completions.create({ messages });
    expect(numLoaded).toBe(0);
    const answers = await Promise.all([1, 2].map(() => engine.chat.completions.create(request)));
    expect(answers).toHaveLength(2);
    await engine.chat.completions.create(request);
    expect(numLoaded).toBe(1);
    expect(worker.engine.grammars).toEqual([MODULE]);
    await engine.unload();
  });

  test('holds up nobody else, and a request that is cancelled meanwhile is not submitted', async () => {
    let arrive: (module: typeof MODULE) => void = () => undefined;
    const loading = new Promise<typeof MODULE>((resolve) => {
      arrive = resolve;
    });
    const { worker, engine } = await start({ loadGrammars: () => loading });
    const controller = new AbortController();
    const cancelled = engine.chat.completions.create(request, { signal: controller.signal });
    const waits = engine.chat.completions.create(request);
    const { choices } = await engine.chat.completions.create({ messages });
    expect(choices[0]?.message.content).toBe('Hello');
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' });
    await engine.metrics();
    const numSteps = worker.engine.numSteps;
    arrive(MODULE);
    expect((await waits).choices).toHaveLength(1);
    expect(worker.engine.numSteps).toBeGreaterThan(numSteps);
    expect(worker.engine.cancelled).toEqual([]);
    await engine.unload();
  });

  test('that cannot be loaded fails the request, and is tried again', async () => {
    let numTries = 0;
    const loadGrammars = async () => {
      numTries += 1;
      if (numTries === 1) throw new Error('404');
      return MODULE;
    };
    const { engine } = await start({ loadGrammars });
    const failure = engine.chat.completions.create(request);
    await expect(failure).rejects.toBeInstanceOf(PagewiseError);
    await expect(failure).rejects.toMatchObject({ code: 'network', message: expect.stringContaining('404') });
    await expect(engine.chat.completions.create(request)).resolves.toBeDefined();
    await engine.unload();
  });
});

describe('pages that wait for that module in one worker', () => {
  const HELLO = { type: 'hello', protocol: PROTOCOL_VERSION, version: VERSION, life: null };
  const source = { id: 'fake', parts: [{ kind: 'blob', blob: fakeModel(), name: 'fake.gguf' }], headers: {} };
  const options = { kv: 'f16', autotune: false, precision: 'full' };
  const { engineRequest: request } = checkTextRequest({ prompt: 'x', regex: 'a+' }, []);
  const submit = (id: number) => ({ type: 'submit', id, request, name: `request ${id}` });

  /** A worker with a model, two pages, and what lets the module arrive. */
  async function twoPages() {
    let settle: (module: GrammarModule | Promise<never>) => void = () => undefined;
    const loading = new Promise<GrammarModule>((resolve) => {
      settle = resolve;
    });
    const engine = new FakeEngine({});
    const submitted: number[] = [];
    const original = engine.submit.bind(engine);
    engine.submit = (id, ...others) => {
      submitted.push(id);
      return original(id, ...others);
    };
    const loop = new WorkerLoop(fakeEnvironment({ loadGrammars: () => loading }, engine));
    void loop.run();
    const pages = [true, false].map((isOwner) => {
      const posted: FromWorker[] = [];
      const send = loop.connect((message) => posted.push(message), { isOwner });
      send(HELLO);
      const of = (id: number): unknown[] =>
        posted.flatMap((message) => {
          if ('id' in message)
            return message.id === id ? [message.type === 'error' ? message.error.code : 'result'] : [];
          if (message.type !== 'events') return [];
          return message.events.filter((event) => event.request === id && event.kind === 'finished').map(() => 'end');
        });
      /** Everything that was sent before has been looked at. */
      const settled = async (id: number): Promise<void> => {
        send({ type: 'tokenize', id, text: 'a', addSpecial: false, parseSpecial: false });
        await vi.waitFor(() => expect(of(id)).toEqual(['result']));
      };
      return { posted, send, of, settled };
    });
    const [a, b] = pages as [(typeof pages)[number], (typeof pages)[number]];
    a.send({ type: 'load', id: 1, source, options, store: false, group: 'g' });
    await vi.waitFor(() => expect(a.of(1)).toEqual(['result']));
    return {
      engine,
      submitted,
      a,
      b,
      arrive: () => settle({ createGrammars: null }),
      fail: () => settle(Promise.reject(new Error('404'))),
    };
  }

  test('may use the same ids: each has its own answer', async () => {
    const { submitted, a, b, arrive } = await twoPages();
    for (const page of [a, b]) page.send(submit(7));
    a.send(submit(7));
    await a.settled(8);
    expect([a.of(7), b.of(7)]).toEqual([['bad_request'], []]);
    arrive();
    await vi.waitFor(() =>
      expect([a.of(7), b.of(7)]).toEqual([
        ['bad_request', 'result', 'end'],
        ['result', 'end'],
      ]),
    );
    expect(new Set(submitted).size).toBe(2);
  });

  test('cancel their own only, and are answered', async () => {
    const { submitted, a, b, arrive } = await twoPages();
    for (const page of [a, b]) page.send(submit(7));
    a.send({ type: 'cancel', request: 7 });
    await a.settled(8);
    expect([a.of(7), b.of(7)]).toEqual([['cancelled'], []]);
    arrive();
    await vi.waitFor(() => expect(b.of(7)).toEqual(['result', 'end']));
    expect([a.of(7), submitted.length]).toEqual([['cancelled'], 1]);
    // The id is free again.
    a.send(submit(7));
    await vi.waitFor(() => expect(a.of(7)).toEqual(['cancelled', 'result', 'end']));
  });

  test('may cancel when the module has just arrived', async () => {
    const { engine, submitted, a, b, arrive } = await twoPages();
    for (const page of [a, b]) page.send(submit(7));
    await a.settled(8);
    // While this is served, nothing else is: the module arrives, then the inbox has both, in one order or the other.
    let go: (rows: Float32Array[]) => void = () => undefined;
    engine.logits = () => new Promise((resolve) => (go = resolve));
    b.send({ type: 'logits', id: 9, ids: [1], positions: [0] });
    await new Promise((resolve) => setTimeout(resolve, 5));
    a.send({ type: 'cancel', request: 7 });
    arrive();
    await new Promise((resolve) => setTimeout(resolve, 5));
    b.send({ type: 'cancel', request: 7 });
    go([]);
    await vi.waitFor(() => expect(a.of(7)).toEqual(['cancelled']));
    await b.settled(10);
    expect(b.of(7)).toEqual(['result']);
    expect([submitted.length, engine.cancelled]).toEqual([1, submitted]);
  });

  test.each([{ type: 'leave' }, { type: 'unload', id: 9 }])('end what waits with %j', async (message) => {
    const { submitted, a, b, arrive } = await twoPages();
    for (const page of [a, b]) page.send(submit(7));
    b.send(message);
    await a.settled(8);
    arrive();
    await vi.waitFor(() => expect(a.of(7)).toEqual(['result', 'end']));
    expect(submitted).toHaveLength(1);
    expect(b.of(7)).not.toContain('result');
  });

  test('are told when their worker is unloaded, and nothing of them comes back', async () => {
    const { submitted, a, b, arrive } = await twoPages();
    for (const page of [a, b]) page.send(submit(7));
    a.send({ type: 'unload', id: 9 });
    await vi.waitFor(() => expect([a.of(7), a.of(9), b.of(7)]).toEqual([['cancelled'], ['result'], ['cancelled']]));
    arrive();
    a.send({ type: 'load', id: 10, source, options, store: false, group: 'g' });
    await vi.waitFor(() => expect(a.of(10)).toEqual(['result']));
    expect(submitted).toEqual([]);
  });

  test('all learn that it cannot be loaded', async () => {
    const { submitted, a, b, fail } = await twoPages();
    for (const page of [a, b]) page.send(submit(7));
    await a.settled(8);
    fail();
    await vi.waitFor(() => expect([a.of(7), b.of(7)]).toEqual([['network'], ['network']]));
    // The id is free again; it still cannot be loaded.
    a.send(submit(7));
    await vi.waitFor(() => expect(a.of(7)).toEqual(['network', 'network']));
    expect(submitted).toEqual([]);
  });
});
