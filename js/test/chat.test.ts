import { describe, expect, test } from 'vitest';
import { Engine, type FinishReason } from '../src/index.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;

async function start(options: FakeOptions = {}): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker(options);
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  return { engine, worker };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
};

async function read<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of stream) all.push(item);
  return all;
}

test.each([false, true])('an `onQueued` that throws ends the request, streamed: %s', async (stream) => {
  const { engine, worker } = await start({ answer: 'x'.repeat(10_000) });
  const wrong = new Error('mine');
  const onQueued = (): void => {
    throw wrong;
  };
  await expect(engine.chat.completions.create({ messages, stream }, { onQueued })).rejects.toBe(wrong);
  await expect(engine.completions.create({ prompt: 'x', stream }, { onQueued })).rejects.toBe(wrong);
  await until(() => worker.engine.running.size === 0);
  expect(worker.engine.cancelled.length).toBe(2);
});

describe('an answer at once', () => {
  test("has OpenAI's shape, usage and timings", async () => {
    const { engine } = await start();
    const answer = await engine.chat.completions.create({ messages });
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-\w{24}$/),
      object: 'chat.completion',
      created: expect.closeTo(Date.now() / 1000, -1),
      model: 'fake-model',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          finish_reason: 'stop',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 5,
        total_tokens: 8,
        prompt_tokens_details: { cached_tokens: 2 },
      },
      timings: { queue_ms: 1, ttft_ms: 2, tpot_ms: 3, prefill_tokens_per_s: 4, decode_tokens_per_s: 5 },
      cache: { read_tokens: 2, written_tokens: 1, miss: null },
    });
  });

  test('ends with length at max_tokens', async () => {
    const { engine } = await start();
    const answer = await engine.chat.completions.create({ messages, max_tokens: 2 });
    expect(answer.choices[0]).toMatchObject({
      message: { content: 'He' },
      finish_reason: 'length' satisfies FinishReason,
    });
  });

  test('refuses before anything is sent', async () => {
    const { engine, worker } = await start();
    const sent = worker.received.length;
    const bad = { messages, tools: [] } as never;
    await expect(engine.chat.completions.create(bad)).rejects.toMatchObject({ code: 'bad_request' });
    expect(worker.received.length).toBe(sent);
  });

  test("passes the engine's refusal on", async () => {
    const { engine } = await start();
    const long = [{ role: 'user' as const, content: 'x'.repeat(2000) }];
    const rejection = expect(engine.chat.completions.create({ messages: long })).rejects;
    await rejection.toMatchObject({
      name: 'PagewiseError',
      code: 'context_too_long',
      message: expect.stringContaining('1000 allowed'),
    });
  });
});

describe('a stream', () => {
  test("has OpenAI's chunks", async () => {
    const { engine } = await start({ answer: 'Hey' });
    const chunks = await read(await engine.chat.completions.create({ messages, stream: true }));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { content: 'H' },
      { content: 'e' },
      { content: 'y' },
      {},
    ]);
    expect(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.created} ${chunk.object} ${chunk.model}`)).size).toBe(1);
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, null, null, 'stop']);
    expect(chunks.map((chunk) => 'timings' in chunk)).toEqual([false, false, false, false, true]);
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false);
  });

  test('ends with usage when asked', async () => {
    const { engine } = await start({ answer: 'Hey' });
    const stream_options = { include_usage: true };
    const chunks = await read(await engine.chat.completions.create({ messages, stream: true, stream_options }));
    const last = chunks.pop();
    expect(last).toMatchObject({ choices: [], usage: { completion_tokens: 3 }, timings: { ttft_ms: 2 } });
    expect(chunks.every((chunk) => chunk.usage === null)).toBe(true);
  });

  test('can be read only once, and says so', async () => {
    const { engine } = await start();
    const stream = await engine.chat.completions.create({ messages, stream: true });
    await read(stream);
    await expect(read(stream)).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('only once'),
    });
  });

  test('is cancelled by break', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(1000) });
    const stream = await engine.chat.completions.create({ messages, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'x') break;
    await until(() => worker.engine.cancelled.length === 1);
    expect(worker.engine.hasWork()).toBe(false);
    const after = worker.engine.numSteps;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(worker.engine.numSteps).toBeLessThanOrEqual(after + 1);
  });

  test('is cancelled by its method, while it is read', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(1000) });
    const stream = await engine.chat.completions.create({ messages, stream: true });
    setTimeout(() => stream.cancel(), 10);
    await expect(read(stream)).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => worker.engine.cancelled.length === 1);
  });

  test('is not cancelled at its end', async () => {
    const { engine, worker } = await start();
    await read(await engine.chat.completions.create({ messages, stream: true }));
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(worker.received.some((message) => message.type === 'cancel')).toBe(false);
  });

  test('keeps what it has when it is read late', async () => {
    const { engine, worker } = await start();
    const stream = await engine.chat.completions.create({ messages, stream: true });
    await until(() => !worker.engine.hasWork());
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await read(stream)).map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Hello');
  });

  test('runs beside others without mixing', async () => {
    const { engine } = await start({ answer: 'Hello there' });
    const texts = await Promise.all(
      [3, 7, 99].map(async (max_tokens) => {
        const chunks = await read(await engine.chat.completions.create({ messages, stream: true, max_tokens }));
        return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
      }),
    );
    expect(texts).toEqual(['Hel', 'Hello t', 'Hello there']);
  });
});

describe('an abort', () => {
  test('before the request', async () => {
    const { engine, worker } = await start();
    const signal = AbortSignal.abort('why');
    const sent = worker.received.length;
    await expect(engine.chat.completions.create({ messages }, { signal })).rejects.toMatchObject({
      code: 'cancelled',
      cause: 'why',
    });
    expect(worker.received.length).toBe(sent);
  });

  test('before the request is queued', async () => {
    const { engine, worker } = await start();
    const controller = new AbortController();
    const answer = engine.chat.completions.create({ messages }, { signal: controller.signal });
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => worker.engine.cancelled.length === 1);
  });

  test('during prefill', async () => {
    const { engine, worker } = await start({ prefillSteps: 100_000 });
    const controller = new AbortController();
    const answer = engine.chat.completions.create({ messages }, { signal: controller.signal });
    await until(() => worker.engine.numSteps > 3);
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => !worker.engine.hasWork());
    expect(worker.engine.cancelled.length).toBe(1);
  });

  test('while streaming', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(1000) });
    const controller = new AbortController();
    const stream = await engine.chat.completions.create({ messages, stream: true }, { signal: controller.signal });
    let num = 0;
    const reading = (async () => {
      for await (const _ of stream) if (++num === 5) controller.abort(new Error('enough'));
    })();
    await expect(reading).rejects.toMatchObject({ code: 'cancelled', cause: { message: 'enough' } });
    expect(num).toBe(5);
    await until(() => worker.engine.cancelled.length === 1);
  });

  test('after the end does nothing', async () => {
    const { engine, worker } = await start();
    const controller = new AbortController();
    const answer = await engine.chat.completions.create({ messages }, { signal: controller.signal });
    controller.abort();
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(worker.received.some((message) => message.type === 'cancel')).toBe(false);
  });

  test('of one request leaves the others alone', async () => {
    const { engine } = await start({ answer: 'Hello there' });
    const controller = new AbortController();
    const first = engine.chat.completions.create({ messages }, { signal: controller.signal });
    const second = engine.chat.completions.create({ messages });
    setTimeout(() => controller.abort(), 5);
    await expect(first).rejects.toMatchObject({ code: 'cancelled' });
    expect((await second).choices[0]?.message.content).toBe('Hello there');
  });
});

describe('completions', () => {
  test('at once and streamed', async () => {
    const { engine } = await start({ answer: 'abc' });
    const whole = await engine.completions.create({ prompt: 'x' });
    expect(whole).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: 'text_completion',
      choices: [{ index: 0, text: 'abc', finish_reason: 'stop', logprobs: null }],
      usage: { completion_tokens: 3 },
      timings: { ttft_ms: 2 },
    });
    const params = { prompt: 'x', stream: true, stream_options: { include_usage: true } } as const;
    const chunks = await read(await engine.completions.create(params));
    expect(chunks.map((chunk) => chunk.choices[0]?.text ?? null)).toEqual(['a', 'b', 'c', '', null]);
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(3);
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });
});

describe('a failing step', () => {
  test('fails every request with its error and leaves the engine usable', async () => {
    let isBroken = true;
    const { engine, worker } = await start({ answer: 'ok' });
    const step = worker.engine.step.bind(worker.engine);
    worker.engine.step = async () => {
      if (isBroken) throw { code: 'device_lost', message: 'the GPU is gone' };
      return step();
    };
    const answers = [engine.chat.completions.create({ messages }), engine.completions.create({ prompt: 'x' })];
    for (const answer of answers) await expect(answer).rejects.toMatchObject({ code: 'device_lost' });
    isBroken = false;
    expect((await engine.chat.completions.create({ messages })).choices[0]?.message.content).toBe('ok');
  });

  test('of one request fails only that one', async () => {
    const { engine, worker } = await start({ answer: 'fine' });
    const step = worker.engine.step.bind(worker.engine);
    worker.engine.step = async () => {
      const first = [...worker.engine.running.keys()][0] as number;
      if (worker.engine.running.size < 2) return step();
      worker.engine.running.delete(first);
      return [{ kind: 'failed', request: first, error: { code: 'wrong_result', message: 'NaN' } }];
    };
    const first = engine.chat.completions.create({ messages });
    const second = engine.chat.completions.create({ messages });
    await expect(first).rejects.toMatchObject({ code: 'wrong_result', message: 'NaN' });
    expect((await second).choices[0]?.message.content).toBe('fine');
  });
});
