/** Streams from a server that are not read to their end, and embeddings. */

import { afterEach, describe, expect, test, vi } from 'vitest';
import { type Policy, Router } from '../src/remote.js';
import { FakeWorker, fakeModel } from './fake.js';

const BASE = 'https://models.example/v1';
const messages = [{ role: 'user', content: 'Hi' }] as const;
const piece = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;

afterEach(() => vi.restoreAllMocks());

function load(policy: Policy): Promise<Router> {
  const remote = { baseURL: BASE, model: 'big' };
  return Router.load(fakeModel(), { createWorker: () => new FakeWorker().asWorker, remote, policy });
}

/** A server that sends what it is told to, and notices who leaves. It hears nothing of aborts but through the body. */
function server(): { send: (text: string) => void; onCancel: ReturnType<typeof vi.fn> } {
  const onCancel = vi.fn();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
    cancel: onCancel,
  });
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response(body));
  return { send: (text) => controller?.enqueue(new TextEncoder().encode(text)), onCancel };
}

/** What a loop over a stream gets, and how it ends. */
async function read(stream: AsyncIterable<{ choices: { delta: { content?: string } }[] }>): Promise<unknown[]> {
  const found: unknown[] = [];
  try {
    for await (const { choices } of stream) found.push(choices[0]?.delta.content);
  } catch (error) {
    found.push((error as { code?: string }).code);
  }
  return found;
}

describe('a stream from a server', () => {
  test('that nobody reads keeps nothing open for longer than the answer takes', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const cleared = vi.spyOn(globalThis, 'clearTimeout');
    const { send, onCancel } = server();
    const router = await load('remote');
    const stream = await router.chat.completions.create({ messages, stream: true, timeout_ms: 1_234_567 });
    const index = timers.mock.calls.findIndex(([, ms]) => ms === 1_234_567);
    const timer = timers.mock.results[index]?.value as unknown;
    expect(timer).toBeDefined();
    send(`${piece('a')}${piece('b')}data: [DONE]\n\n`);
    // The server has not closed it.
    await vi.waitFor(() => expect(onCancel).toHaveBeenCalled());
    expect(cleared).toHaveBeenCalledWith(timer);
    // It can be read all the same, and an abort has no effect any more.
    stream.cancel();
    expect(await read(stream)).toEqual(['a', 'b']);
  });

  test('can be ended without being read', async () => {
    const { send, onCancel } = server();
    const router = await load('remote');
    const stream = await router.chat.completions.create({ messages, stream: true });
    send(piece('a'));
    stream.cancel();
    await vi.waitFor(() => expect(onCancel).toHaveBeenCalled());
    expect(await read(stream)).toEqual(['cancelled']);
  });

  test('ends with who leaves the loop, and with an abort', async () => {
    for (const how of ['break', 'abort']) {
      const { send, onCancel } = server();
      const router = await load('remote');
      const controller = new AbortController();
      const stream = await router.chat.completions.create({ messages, stream: true }, { signal: controller.signal });
      send(piece('a'));
      for await (const _ of stream) {
        if (how === 'break') break;
        send(piece('b'));
        await new Promise((resolve) => setTimeout(resolve, 5));
        controller.abort();
        await vi.waitFor(() => expect(onCancel).toHaveBeenCalled());
        break;
      }
      await vi.waitFor(() => expect(onCancel).toHaveBeenCalled());
    }
  });

  test('tells what had come before its time was over', async () => {
    const { send } = server();
    const router = await load('remote');
    const stream = await router.chat.completions.create({ messages, stream: true, timeout_ms: 100 });
    send(piece('a'));
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await read(stream)).toEqual(['a', 'deadline_exceeded']);
  });

  test('has years, if it is given them', async () => {
    const { send } = server();
    const router = await load('remote');
    const stream = await router.chat.completions.create({ messages, stream: true, deadline_ms: 3e10 });
    send(`${piece('a')}data: [DONE]\n\n`);
    expect(await read(stream)).toEqual(['a']);
  });
});

test('a stream from here can be ended in the same way', async () => {
  const router = await load('local');
  const stream = await router.chat.completions.create({ messages, stream: true });
  stream.cancel();
  expect(await read(stream)).toContain('cancelled');
});

describe('embeddings', () => {
  test('are computed here or there, by the policy', async () => {
    const data = [1, 0].map((index) => ({ object: 'embedding', index, embedding: [index] }));
    const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      return Response.json({ data, model: 'big', usage: { prompt_tokens: 2 } });
    });
    const seen: unknown[] = [];
    const router = await load(({ params }) => {
      seen.push(params.user);
      return params.user === 'far' ? 'remote' : 'local';
    });
    const here = await router.embeddings.create({ input: ['a', 'b'], model: 'any' });
    expect([here.computed_on, here.data.length, here.model]).toEqual(['local', 2, 'fake-model']);
    const input = ['a', 'b'];
    const there = await router.embeddings.create({ input, model: 'any', user: 'far', priority: 'batch' });
    expect(there).toEqual({
      object: 'list',
      data: [0, 1].map((index) => ({ object: 'embedding', index, embedding: [index] })),
      model: 'big',
      usage: { prompt_tokens: 2, total_tokens: 2 },
      computed_on: 'remote',
    });
    expect(seen).toEqual([undefined, 'far']);
    const [url, init] = fetched.mock.calls[0] ?? [];
    expect([url, JSON.parse(init?.body as string)]).toEqual([
      `${BASE}/embeddings`,
      { input, user: 'far', model: 'big' },
    ]);
    await expect(router.embeddings.create({ input: '' })).rejects.toThrow('input: an empty text');
    expect(fetched).toHaveBeenCalledOnce();
  });

  test('that a server does not have are an error', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({ data: [{ index: 0 }] }));
    const router = await load('remote');
    await expect(router.embeddings.create({ input: 'a' })).rejects.toMatchObject({ code: 'network' });
  });
});

describe('what servers make of an answer', () => {
  const reply = (body: unknown): void => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response(text));
  };

  test.each([
    ['an error with the status 200', { error: { message: 'out of credit' } }, /500: out of credit/],
    ['nothing', {}, /no choices, but nothing/],
    ['an answer of something else', { status: 'ok', choices: [] }, /no choices, but status, choices/],
    ['choices that say nothing', { choices: [{ index: 0 }] }, /no choices/],
    ['a web page', '<!doctype html>', /not JSON/],
  ])('%s is no empty answer', async (_, body, message) => {
    reply(body);
    const failure = { code: 'network', message: expect.stringMatching(message) };
    await expect((await load('remote')).chat.completions.create({ messages })).rejects.toMatchObject(failure);
  });

  test('an error that is null is none', async () => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'a' } }];
    reply({ error: null, choices });
    const router = await load('remote');
    expect((await router.chat.completions.create({ messages })).choices[0]?.message.content).toBe('a');
    reply(
      `data: ${JSON.stringify({ error: null, choices: [{ index: 0, delta: { content: 'a' } }] })}\n\ndata: [DONE]\n\n`,
    );
    expect(await read(await router.chat.completions.create({ messages, stream: true }))).toEqual(['a']);
  });

  test('an event without end is given up', async () => {
    const onCancel = vi.fn();
    const piece = new TextEncoder().encode('x'.repeat(1024 ** 2));
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(piece), cancel: onCancel });
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response(body));
    const stream = await (await load('remote')).chat.completions.create({ messages, stream: true });
    expect(await read(stream)).toEqual(['network']);
    expect(onCancel).toHaveBeenCalled();
  });
});
