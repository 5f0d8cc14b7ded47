import { describe, expect, test } from 'vitest';
import { Engine } from '../src/engine.js';
import { PagewiseError } from '../src/errors.js';
import { checkChatRequest, checkTextRequest } from '../src/request.js';
import type { ChatCompletionCreateParamsNonStreaming } from '../src/types.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

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
