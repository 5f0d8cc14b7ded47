import { describe, expect, test, vi } from 'vitest';
import { answerRequest } from '../src/handler.js';
import { Engine, handleRequest } from '../src/index.js';
import { FakeWorker, fakeModel } from './fake.js';
import { chat, post, refuse, start, until } from './handler-setup.js';

describe('aborts', () => {
  test('cancel an answer, whole or streamed, and reject as fetch does', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(10_000) });
    const reason = new Error('no longer');
    for (const stream of [false, true]) {
      const controller = new AbortController();
      const request = post('/v1/chat/completions', { ...chat, stream }, { signal: controller.signal });
      const answering = handleRequest(engine, request);
      if (!stream) {
        await until(() => worker.engine.running.size === 1);
        controller.abort(reason);
        await expect(answering).rejects.toBe(reason);
      } else {
        const reader = ((await answering).body as ReadableStream<Uint8Array>).getReader();
        await reader.read();
        controller.abort(reason);
        const drain = async (): Promise<void> => {
          while (!(await reader.read()).done);
        };
        await expect(drain()).rejects.toBe(reason);
      }
      await until(() => worker.engine.running.size === 0);
    }
    expect(worker.engine.cancelled.length).toBe(2);
    await expect(
      handleRequest(engine, post('/v1/completions', {}, { signal: AbortSignal.abort(reason) })),
    ).rejects.toBe(reason);
  });

  test('end the wait for a body that never ends', async () => {
    const { engine } = await start();
    const controller = new AbortController();
    const { signal } = controller;
    const options = { method: 'POST', body: new ReadableStream(), signal, duplex: 'half' } as RequestInit;
    const answering = handleRequest(engine, new Request('https://site.example/v1/chat/completions', options));
    setTimeout(() => controller.abort('no longer'), 5);
    await expect(answering).rejects.toBe('no longer');
  });

  test('who stops reading cancels', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(10_000) });
    const response = await handleRequest(engine, post('/v1/completions', { prompt: 'x', stream: true }));
    await until(() => worker.engine.running.size === 1);
    await response.body?.cancel();
    await until(() => worker.engine.running.size === 0);
    expect(worker.engine.cancelled.length).toBe(1);
  });
});

describe('a whole answer that takes long', () => {
  const slow = { ...chat, max_tokens: 300 };
  const answer = 'x'.repeat(300);

  test('begins before it is complete where it is asked to, and is the same', async () => {
    const { engine, worker } = await start({ answer });
    const response = await answerRequest(engine, post('/v1/chat/completions', slow), {}, 1);
    expect([response.status, worker.engine.running.size]).toEqual([200, 1]);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect((await response.json()).choices[0].message.content).toBe(answer);
    const quick = await answerRequest(
      engine,
      post('/v1/completions', { ...chat, messages: undefined, prompt: '' }),
      {},
      1e6,
    );
    expect(worker.engine.running.size).toBe(0);
    expect((await quick.json()).choices[0].text).toBe(answer);
  });

  test('still has the status of what is refused, and of what may be late', async () => {
    const { engine, worker } = await start({ answer });
    const late = await answerRequest(engine, post('/v1/chat/completions', { ...slow, timeout_ms: 1e6 }), {}, 1);
    expect(worker.engine.running.size).toBe(0);
    expect(late.status).toBe(200);
    refuse(worker, { code: 'queue_full', message: 'full' });
    expect((await answerRequest(engine, post('/v1/chat/completions', slow), {}, 0)).status).toBe(429);
  });

  test('breaks off when it fails or is aborted', async () => {
    const { engine, worker } = await start({ answer });
    const controller = new AbortController();
    const request = post('/v1/chat/completions', slow, { signal: controller.signal });
    const aborted = await answerRequest(engine, request, {}, 1);
    controller.abort();
    await expect(aborted.text()).rejects.toThrow();
    await until(() => worker.engine.running.size === 0);
    const failed = await answerRequest(engine, post('/v1/chat/completions', slow), {}, 1);
    worker.engine.step = () => Promise.reject({ code: 'device_lost', message: 'gone' });
    await expect(failed.text()).rejects.toThrow('gone');
  });
});

test('an abort is heard while the engine does not say how busy it is', async () => {
  const worker = new FakeWorker();
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  vi.spyOn(engine, 'metrics').mockReturnValue(new Promise(() => undefined));
  const leave = new AbortController();
  const answered = handleRequest(engine, new Request('http://localhost/v1/models', { signal: leave.signal }));
  leave.abort(new Error('left'));
  await expect(answered).rejects.toThrow('left');
});
