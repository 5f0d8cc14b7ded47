import { describe, expect, test, vi } from 'vitest';
import { handleRequest } from '../src/index.js';
import { chat, events, get, post, refuse, start } from './handler-setup.js';

describe('addresses', () => {
  test.each([
    ['POST', '/v1/moderations', 404, 'unknown_url'],
    ['GET', '/v2/models', 404, 'unknown_url'],
    ['GET', '/v1/', 404, 'unknown_url'],
    ['GET', '/v1/models/', 404, 'unknown_url'],
    ['GET', '/v1/chat/completions', 405, 'method_not_allowed'],
    ['DELETE', '/v1/models/fake-model', 405, 'method_not_allowed'],
    ['POST', '/v1/models', 405, 'method_not_allowed'],
    ['GET', '/v1/models/other', 404, 'model_not_found'],
    ['GET', '/v1/models/%E0%A4%A', 404, 'model_not_found'],
  ])('%s %s is %d', async (method, path, status, code) => {
    const { engine } = await start();
    const response = await handleRequest(engine, get(path, method));
    expect(response.status).toBe(status);
    const { error } = await response.json();
    expect(error).toMatchObject({ type: 'invalid_request_error', code, message: expect.any(String) });
    expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type']);
    expect(response.headers.get('x-request-id')).toMatch(/^req-\w{24}$/);
    if (status === 405) expect(response.headers.get('allow')).toBe(path.includes('models') ? 'GET' : 'POST');
  });

  test('models are listed, and found by id and by name', async () => {
    const { engine } = await start();
    const list = await (await handleRequest(engine, get('/v1/models'))).json();
    expect(list).toMatchObject({ object: 'list', data: [{ id: 'fake-model', object: 'model', owned_by: 'pagewise' }] });
    for (const id of ['fake-model', 'Fake%20Model']) {
      expect(await (await handleRequest(engine, get(`/v1/models/${id}`))).json()).toEqual(list.data[0]);
    }
  });

  test('the path can be another', async () => {
    const { engine } = await start();
    expect((await handleRequest(engine, get('/a/b/models'), { path: '/a/b/' })).status).toBe(200);
    expect((await handleRequest(engine, get('/v1/models'), { path: '/a/b/' })).status).toBe(404);
    await expect(handleRequest(engine, get('/'), { base: '/' } as never)).rejects.toMatchObject({
      code: 'bad_request',
    });
  });
});

describe('answers', () => {
  test('whole ones are what the engine answers', async () => {
    const { engine } = await start();
    const response = await handleRequest(engine, post('/v1/chat/completions', chat));
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    const answer = await response.json();
    expect(answer).toMatchObject({ object: 'chat.completion', model: 'fake-model', usage: { total_tokens: 8 } });
    expect(answer.choices[0]).toMatchObject({ message: { content: 'Hello' }, finish_reason: 'stop' });
    const text = await handleRequest(engine, post('/v1/completions', { model: 'Fake Model', prompt: 'x' }));
    expect(await text.json()).toMatchObject({ object: 'text_completion', choices: [{ text: 'Hello' }] });
  });

  test.each([
    ['/v1/chat/completions', { ...chat, n: 2 }],
    ['/v1/completions', { prompt: 'x', n: 2 }],
  ])('%s streams the same chunks as events', async (path, params) => {
    const { engine } = await start({ answer: 'Hé\n\ndata: "' });
    const stream_options = { include_usage: true };
    const response = await handleRequest(engine, post(path, { ...params, stream: true, stream_options }));
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const data = events(await response.text());
    expect(data.pop()).toBe('[DONE]');
    const chunks = data.map((text) => JSON.parse(text));
    const create = path.includes('chat')
      ? engine.chat.completions.create({ ...chat, n: 2, stream: true, stream_options })
      : engine.completions.create({ prompt: 'x', n: 2, stream: true, stream_options });
    const expected: object[] = [];
    for await (const chunk of await create) expected.push({ ...chunk, id: chunks[0].id, created: chunks[0].created });
    expect(chunks).toEqual(expected);
    expect(chunks.at(-1).usage).toMatchObject({ prompt_tokens: 3 });
  });

  test('bytes come at once, while there is no chunk yet', async () => {
    const { engine, worker } = await start();
    const step = worker.engine.step.bind(worker.engine);
    let isHeld = false;
    worker.engine.step = () => {
      if (isHeld) return new Promise(() => undefined);
      isHeld = true;
      return step();
    };
    const response = await handleRequest(engine, post('/v1/completions', { prompt: 'x', stream: true }));
    const { value } = (await response.body?.getReader().read()) ?? {};
    expect(new TextDecoder().decode(value)).toBe(':\n\n');
  });

  test('usage comes only when asked for, progress too', async () => {
    const { engine } = await start({ prefillSteps: 3 });
    const plain = await handleRequest(engine, post('/v1/chat/completions', { ...chat, stream: true }));
    const text = await plain.text();
    expect(text).toContain('"content":"H"');
    expect(text).not.toMatch(/"usage"|"progress"/);
    const stream_options = { include_progress: true };
    const asked = await handleRequest(engine, post('/v1/chat/completions', { ...chat, stream: true, stream_options }));
    const states = events(await asked.text()).flatMap((data) => /"state":"(\w+)"/.exec(data)?.[1] ?? []);
    expect(states).toEqual(['waiting', 'prefill', 'prefill', 'prefill']);
  });

  test('headers say where in the queue it is', async () => {
    const { engine, worker } = await start();
    const of = (response: Response): (string | null)[] =>
      ['queue-depth', 'estimated-wait-ms'].map((name) => response.headers.get(`x-pagewise-${name}`));
    expect(of(await handleRequest(engine, get('/v1/models')))).toEqual(['0', '0']);
    const metrics = worker.engine.metrics.bind(worker.engine);
    const busy = { numWaiting: 6, numRunning: 3 };
    worker.engine.metrics = () => ({ ...metrics(), ...busy });
    expect(of(await handleRequest(engine, get('/v1/models')))).toEqual(['6', null]);
    const times = (sum: number): object => ({ ...metrics().e2eMs, count: 2, sum });
    worker.engine.metrics = () =>
      ({ ...metrics(), ...busy, e2eMs: times(1000), queueMs: times(200) }) as ReturnType<typeof metrics>;
    // 400 ms an answer, three at a time.
    expect(of(await handleRequest(engine, get('/v1/models')))).toEqual(['6', '800']);
    expect(of(await handleRequest(engine, post('/v1/completions', { prompt: 3 })))).toEqual(['6', '800']);
    // Of a stream, what the engine itself says of it.
    const step = worker.engine.step.bind(worker.engine);
    worker.engine.step = async () => {
      const found = await step();
      const progress = { state: 'waiting', position: 2, estimated_wait_ms: 12.4 } as const;
      return found.map((event) => (event.kind === 'progress' ? { ...event, progress } : event));
    };
    const stream = await handleRequest(engine, post('/v1/chat/completions', { ...chat, stream: true }));
    expect(of(stream)).toEqual(['2', '12']);
    await stream.body?.cancel();
  });
});

describe('errors', () => {
  test.each([
    [{ ...chat, functions: [] }, 'functions', 'unsupported_parameter'],
    [{ ...chat, tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', 'invalid_value'],
    [{ ...chat, temperature: 3 }, 'temperature', 'invalid_value'],
    [{ ...chat, stream: 'yes' }, 'stream', 'invalid_value'],
    [{ ...chat, stream: true, stream_options: 3 }, 'stream_options', 'invalid_value'],
    [{ ...chat, stream: true, stream_options: { include_progress: 1 } }, 'include_progress', 'invalid_value'],
    [{ ...chat, stream: true, stream_options: { x: 1 } }, 'stream_options.x', 'unsupported_parameter'],
    [{ messages: [{ role: 'tool', content: '' }] }, 'messages[0].tool_call_id', 'invalid_value'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0]', 'invalid_value'],
    [{ ...chat, model: 3 }, 'model', 'invalid_value'],
    [{}, 'messages', 'invalid_value'],
  ])('%j names its field', async (params, param, code) => {
    const { engine } = await start();
    const response = await handleRequest(engine, post('/v1/chat/completions', params));
    expect(response.status).toBe(400);
    const { error } = await response.json();
    expect(error).toMatchObject({ type: 'invalid_request_error', param, code });
  });

  test('of the body', async () => {
    const { engine } = await start();
    const of = async (body: string, options = {}): Promise<unknown[]> => {
      const response = await handleRequest(engine, post('/v1/completions', body), options);
      return [response.status, (await response.json()).error.code];
    };
    expect(await of('{"prompt": ')).toEqual([400, 'invalid_json']);
    expect(await of('')).toEqual([400, 'invalid_json']);
    expect(await of('[1]')).toEqual([400, 'invalid_json']);
    expect(await of('{"prompt":"éé"}', { maxBodyBytes: 16 })).toEqual([413, 'body_too_large']);
    expect(await of('{"prompt":"x","model":"y"}', { maxBodyBytes: 26 })).toEqual([404, 'model_not_found']);
    expect(await of('{"prompt":"éé","x":1}')).toEqual([400, 'unsupported_parameter']);
  });

  test.each([
    [{ code: 'queue_full', message: 'full', retryAfterMs: 1500 }, 429, 'queue_full', '2', '1500', null],
    [{ code: 'queue_full', message: 'full' }, 429, 'queue_full', '1', '1000', null],
    [{ code: 'context_too_long', message: 'long' }, 400, 'context_length_exceeded', null, null, null],
    [{ code: 'deadline_exceeded', message: 'late' }, 504, 'deadline_exceeded', null, null, 'false'],
    [{ code: 'device_lost', message: 'gone' }, 503, 'device_lost', null, null, 'false'],
    [{ code: 'wrong_result', message: 'nan' }, 500, 'wrong_result', null, null, 'false'],
  ])('%j', async (thrown, status, code, ...retry) => {
    const { engine, worker } = await start();
    refuse(worker, thrown);
    for (const stream of [false, true]) {
      const response = await handleRequest(engine, post('/v1/chat/completions', { ...chat, stream }));
      expect(response.status).toBe(status);
      const { error } = await response.json();
      expect(error).toMatchObject({ code, message: thrown.message });
      expect(error.param).toBe(status === 400 ? 'messages' : null);
      const names = ['retry-after', 'retry-after-ms', 'x-should-retry'];
      expect(names.map((name) => response.headers.get(name))).toEqual(retry);
    }
  });

  test('an engine that was unloaded is a 503', async () => {
    const { engine } = await start();
    expect(engine.ended).toBe(null);
    await engine.unload();
    expect(engine.ended).toMatchObject({ code: 'cancelled' });
    const response = await handleRequest(engine, post('/v1/chat/completions', chat));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  });

  test('what is no error of the engine is a 500', async () => {
    const { engine } = await start();
    vi.spyOn(engine, 'metrics').mockRejectedValue(new Error('a bug'));
    const response = await handleRequest(engine, get('/v1/models'));
    expect(response.status).toBe(500);
    expect((await response.json()).error).toMatchObject({ type: 'server_error', code: 'internal_error' });
  });

  test('in the middle of a stream are its last event', async () => {
    const { engine, worker } = await start({ answer: 'abc' });
    const step = worker.engine.step.bind(worker.engine);
    let numTexts = 0;
    worker.engine.step = async () => {
      const found = await step();
      if (found.some(({ kind }) => kind === 'text') && ++numTexts === 2) throw { code: 'device_lost', message: 'gone' };
      return found;
    };
    const response = await handleRequest(engine, post('/v1/chat/completions', { ...chat, stream: true }));
    expect(response.status).toBe(200);
    const data = events(await response.text());
    expect(JSON.parse(data.at(-1) ?? '')).toEqual({
      error: { message: 'gone', type: 'server_error', param: null, code: 'device_lost' },
    });
    expect(data.join()).toContain('"content":"a"');
    expect(data.join()).not.toContain('"content":"b"');
  });
});
