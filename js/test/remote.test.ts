import { afterEach, expect, test, vi } from 'vitest';
import type { Engine } from '../src/index.js';
import { type Policy, Router, type RouterOptions } from '../src/remote.js';
import { eventData } from '../src/sse-reader.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

const BASE = 'https://models.example/v1';
const messages = [{ role: 'user', content: 'Hi' }] as const;
const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };

afterEach(() => vi.restoreAllMocks());

interface Sent {
  url: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

/** Answers the network's requests in turn; a text is a stream of events, a number a status, `never` no answer. */
function answers(...replies: (object | string | number | Error)[]): Sent[] {
  const sent: Sent[] = [];
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init = {}) => {
    const body = init.body === undefined ? {} : JSON.parse(init.body as string);
    sent.push({ url: String(url), headers: init.headers as Record<string, string>, body });
    init.signal?.throwIfAborted();
    const reply = replies.shift() ?? 500;
    if (reply instanceof Error) throw reply;
    if (reply === 'never') await new Promise((_, reject) => init.signal?.addEventListener('abort', reject));
    if (reply instanceof Response) return reply;
    if (typeof reply === 'number') return new Response('{"error":{"message":"no"}}', { status: reply });
    return typeof reply === 'string' ? new Response(reply) : Response.json(reply);
  });
  return sent;
}

const answer = (content: string, more: object = {}): object => {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  return { id: 'x', object: 'chat.completion', created: 1, model: 'big', choices, usage, ...more };
};
const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const piece = (content: string | null): string => event({ id: 'x', choices: [{ index: 0, delta: { content } }] });

function load(policy: Policy | undefined, options: FakeOptions = {}, more: RouterOptions = {}): Promise<Router> {
  const remote = { baseURL: BASE, model: 'big', apiKey: 'secret' };
  const createWorker = (): Worker => new FakeWorker(options).asWorker;
  return Router.load(fakeModel(), { createWorker, remote, ...(policy === undefined ? {} : { policy }), ...more });
}

const broken = (code: string): FakeOptions => ({
  module: { loadEngine: () => Promise.reject({ code, message: 'cannot' }) },
});

test('the default never asks the server, not even where the device cannot answer', async () => {
  const sent = answers();
  const router = await load(undefined);
  const { computed_on, choices, timings } = await router.chat.completions.create({ messages, model: 'any' });
  expect([computed_on, choices[0]?.message.content, timings?.ttft_ms]).toEqual(['local', 'Hello', 2]);
  await expect(load(undefined, broken('out_of_memory'))).rejects.toMatchObject({ code: 'out_of_memory' });
  expect(sent).toEqual([]);
});

test('remote never loads the model; what is ours is not sent', async () => {
  const sent = answers(answer('far', { timings: { cache_n: 2 }, cache: 1 }));
  const router = await load('remote', broken('corrupt_model'));
  expect([router.engine, router.error, router.info.id]).toEqual([null, null, `${BASE}/`]);
  const cached = [{ ...messages[0], cache_control: { type: 'ephemeral' as const } }];
  const params = { messages: cached, priority: 'batch', cache: { pin: true }, deadline_ms: 9000, top_k: 4 } as const;
  const found = await router.chat.completions.create(params);
  expect(sent).toEqual([
    {
      url: `${BASE}/chat/completions`,
      headers: { 'content-type': 'application/json', authorization: 'Bearer secret' },
      body: { messages, top_k: 4, model: 'big' },
    },
  ]);
  expect(found).toEqual({
    ...answer('far'),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'far', refusal: null },
        finish_reason: 'stop',
        logprobs: null,
      },
    ],
    usage: { ...usage, prompt_tokens_details: { cached_tokens: 2 } },
    computed_on: 'remote',
  });
});

test.each(['no_webgpu', 'out_of_memory', 'unsupported_model'])(
  'prefer-local asks the server after %s',
  async (code) => {
    answers(answer('far'));
    const router = await load('prefer-local', broken(code));
    expect(router.error?.code).toBe(code);
    expect((await router.chat.completions.create({ messages })).computed_on).toBe('remote');
  },
);

test.each(['corrupt_model', 'network', 'bad_request'])('%s is no reason to ask somebody else', async (code) => {
  await expect(load('prefer-local', broken(code))).rejects.toMatchObject({ code });
});

test('prefer-local answers here while it can, and says so in each chunk', async () => {
  const sent = answers(answer('far'));
  const router = await load('prefer-local');
  const stream = await router.completions.create({ prompt: 'Hi', stream: true });
  expect(stream.computed_on).toBe('local');
  for await (const chunk of stream) expect(chunk.computed_on).toBe('local');
  await router.unload();
  await expect(router.chat.completions.create({ messages })).rejects.toMatchObject({ code: 'cancelled' });
  expect(sent).toEqual([]);
});

test('a function decides on every request', async () => {
  answers(answer('far'));
  const seen: unknown[] = [];
  const router = await load(({ error, params }) => {
    seen.push([error, params.user]);
    return params.user === 'far' ? 'remote' : 'local';
  });
  expect((await router.chat.completions.create({ messages })).computed_on).toBe('local');
  expect((await router.chat.completions.create({ messages, user: 'far' })).computed_on).toBe('remote');
  expect(seen).toEqual([
    [null, undefined],
    [null, 'far'],
  ]);
  const lost = await load(() => 'local', broken('no_webgpu'));
  await expect(lost.chat.completions.create({ messages })).rejects.toMatchObject({ code: 'no_webgpu' });
  const odd = await load(() => 'moon' as 'local');
  await expect(odd.chat.completions.create({ messages })).rejects.toThrow('policy: local or remote is needed');
});

test('options and requests are checked before anything is loaded or sent', async () => {
  const sent = answers();
  const reject = (more: object): Promise<Router> => load(undefined, {}, more as RouterOptions);
  await expect(reject({ policy: 'maybe' })).rejects.toThrow('policy: local, remote, prefer-local or a function');
  await expect(reject({ policy: 'remote', remote: undefined })).rejects.toThrow('needs a server');
  await expect(reject({ policy: 'remote', remote: { baseURL: 'nowhere' } })).rejects.toThrow('is not a valid address');
  await expect(reject({ policy: 'remote', remote: { baseURL: BASE, key: 1 } })).rejects.toThrow('key is not supported');
  const router = await load('remote');
  const params = { messages, temprature: 0 } as { messages: typeof messages };
  await expect(router.chat.completions.create(params)).rejects.toThrow('temprature is not supported');
  expect(sent).toEqual([]);
});

async function stream(router: Router, signal?: AbortSignal): Promise<string> {
  const params = { messages, stream: true, stream_options: { include_usage: true } } as const;
  let text = '';
  for await (const chunk of await router.chat.completions.create(params, signal ? { signal } : {})) {
    expect(chunk.computed_on).toBe('remote');
    text += chunk.choices[0]?.delta.content ?? '';
    if (chunk.usage) text += ` ${chunk.usage.prompt_tokens_details.cached_tokens}`;
  }
  return text;
}

test('streams, with the usage of vLLM and of llama-server', async () => {
  const vllm = event({ choices: [], usage: { ...usage, prompt_tokens_details: { cached_tokens: 1 } } });
  const llama = event({ choices: [], usage, timings: { cache_n: 2 } });
  const other = event({ choices: [], usage: { ...usage, prompt_tokens_details: null } });
  const end = 'data: [DONE]\n\n';
  answers(...[vllm, llama, other].map((last) => `: hello\n\n${piece(null)}${piece('a')}${piece('b')}${last}${end}`));
  const router = await load('remote');
  expect([await stream(router), await stream(router), await stream(router)]).toEqual(['ab 1', 'ab 2', 'ab 0']);
});

test('what breaks off or fails in the middle is an error, and is not asked again', async () => {
  const sent = answers(piece('a'), piece('a') + event({ error: { message: 'no memory', code: 500 } }));
  const router = await load('remote');
  await expect(stream(router)).rejects.toMatchObject({
    code: 'network',
    message: expect.stringContaining('broke off'),
  });
  await expect(stream(router)).rejects.toMatchObject({
    code: 'network',
    message: expect.stringContaining('no memory'),
  });
  expect(sent.length).toBe(2);
});

test('before anything was answered, what may pass is tried again', async () => {
  const sent = answers(new TypeError('refused'), 503, answer('at last'));
  const router = await load('remote');
  expect((await router.chat.completions.create({ messages })).choices[0]?.message.content).toBe('at last');
  expect(sent.length).toBe(3);
});

test.each<[number, object, object]>([
  [400, { error: { message: 'bad field' } }, { code: 'bad_request' }],
  [400, { error: { message: 'x', code: 'context_length_exceeded' } }, { code: 'context_too_long' }],
  [400, { error: { message: 'x', type: 'exceed_context_size_error' } }, { code: 'context_too_long' }],
  [401, { detail: 'who are you?' }, { code: 'network', status: 401, message: expect.stringContaining('who are you?') }],
  [429, {}, { code: 'queue_full', retryAfterMs: 2000 }],
  [504, {}, { code: 'deadline_exceeded' }],
  [500, { error: 'oops' }, { code: 'network', status: 500 }],
])('status %d is an error of ours', async (status, body, expected) => {
  const sent = answers(Response.json(body, { status, headers: { 'retry-after': '2' } }));
  const router = await load('remote');
  await expect(router.chat.completions.create({ messages })).rejects.toMatchObject(expected);
  expect(sent.length).toBe(1);
});

test('an abort and a deadline end it; a model without a name is the first of the server', async () => {
  const sent = answers({ data: [{ id: 'found' }] }, 'never', 'never');
  const router = await load('remote', {}, { remote: { baseURL: new URL(BASE) } });
  const abort = new AbortController();
  const aborted = router.chat.completions.create({ messages }, { signal: abort.signal });
  setTimeout(() => abort.abort(), 5);
  await expect(aborted).rejects.toMatchObject({ code: 'cancelled' });
  await expect(router.chat.completions.create({ messages, timeout_ms: 5 })).rejects.toMatchObject({
    code: 'deadline_exceeded',
  });
  expect(sent.map(({ url, body }) => `${url.slice(BASE.length)} ${body.model}`)).toEqual([
    '/models undefined',
    '/chat/completions found',
    '/chat/completions found',
  ]);
});

test('event streams, however they are cut', async () => {
  const text = 'data: d\r\ndata: e\r\n\r\ndata: a\r\n\r\n:x\ndata: b\ndata:c\n\nid: 1\r\rdata: é\r\rdata: lost';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 3, 1000]) {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = parts.shift();
        if (part === undefined) controller.close();
        else controller.enqueue(part);
      },
    });
    const found: string[] = [];
    for await (const data of eventData(body)) found.push(data);
    expect(found).toEqual(['d\ne', 'a', 'b\nc', 'é']);
  }
});

test('an engine for whoever wants one', async () => {
  const router = await load('prefer-local');
  expect((router.engine as Engine).info.id).toBe('fake-model');
});

test.each(['grammar', 'regex', 'allowed_token_ids', 'stop_token_ids'])(
  'a server is not asked for %s, which it would not keep to',
  async (name) => {
    const sent = answers();
    const router = await load('remote');
    const value = name.endsWith('ids') ? [1] : 'a';
    const asked = router.chat.completions.create({ messages, [name]: value } as never);
    await expect(asked).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining(name) });
    expect(sent).toEqual([]);
  },
);
