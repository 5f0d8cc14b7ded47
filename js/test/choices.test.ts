import { describe, expect, test } from 'vitest';
import { collect, combine } from '../src/choices.js';
import { Generation } from '../src/generation.js';
import { Engine } from '../src/index.js';
import type { FinishedEvent } from '../src/protocol.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;

async function start(options: FakeOptions = {}, load: object = {}): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker(options);
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker, ...load });
  return { engine, worker };
}

async function read<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of stream) all.push(item);
  return all;
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
};

describe('several answers', () => {
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 5 + 6 + 6,
    total_tokens: 3 + 5 + 6 + 6,
    prompt_tokens_details: { cached_tokens: 2 },
  };

  test('come at once, the prompt counted once', async () => {
    const { engine } = await start();
    const answer = await engine.chat.completions.create({ messages, n: 3 });
    expect(answer.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, 'Hello'],
      [1, 'Hello1'],
      [2, 'Hello2'],
    ]);
    expect(answer.choices.every((choice) => choice.finish_reason === 'stop')).toBe(true);
    expect(answer.usage).toEqual(usage);
    expect(answer.timings).toMatchObject({ queue_ms: 1, ttft_ms: 2, tpot_ms: 3, decode_tokens_per_s: 15 });
    expect(answer.cache).toEqual({ read_tokens: 2, written_tokens: 3, miss: null });
    const text = await engine.completions.create({ prompt: 'x', n: 2 });
    expect(text.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'Hello'],
      [1, 'Hello1'],
    ]);
  });

  test('are streamed side by side, each with its end, and usage at the last', async () => {
    const { engine } = await start({ answer: 'Hey' });
    const stream_options = { include_usage: true };
    const params = { messages, n: 3, stream: true, stream_options } as const;
    const chunks = await read(await engine.chat.completions.create(params));
    const last = chunks.pop();
    expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 3 + 4 + 4 } });
    expect(chunks.every((chunk) => chunk.choices.length === 1 && chunk.usage === null)).toBe(true);
    for (const index of [0, 1, 2]) {
      const own = chunks.map((chunk) => chunk.choices[0]).filter((choice) => choice?.index === index);
      expect(own[0]?.delta).toEqual({ role: 'assistant', content: '' });
      expect(own.map((choice) => choice?.delta.content ?? '').join('')).toBe(index === 0 ? 'Hey' : `Hey${index}`);
      expect(own.map((choice) => choice?.finish_reason).filter((reason) => reason !== null)).toEqual(['stop']);
      expect(own.at(-1)?.finish_reason).toBe('stop');
    }
    expect(chunks.filter((chunk) => 'timings' in chunk).length).toBe(3);
    const text = await read(await engine.completions.create({ prompt: 'x', n: 2, stream: true, stream_options }));
    expect(text.at(-1)?.usage?.completion_tokens).toBe(3 + 4);
    expect(text.slice(0, -1).every((chunk) => chunk.choices.length === 1)).toBe(true);
    const second = text.map((chunk) => chunk.choices[0]).filter((choice) => choice?.index === 1);
    expect(second.map((choice) => choice?.text).join('')).toBe('Hey1');
  });

  test('are cancelled together', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(1000) });
    const stream = await engine.chat.completions.create({ messages, n: 4, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'x') break;
    await until(() => worker.engine.cancelled.length === 1);
    expect(worker.engine.hasWork()).toBe(false);
  });

  test('fail together', async () => {
    const { engine, worker } = await start({ answer: 'x'.repeat(1000) });
    const step = worker.engine.step.bind(worker.engine);
    worker.engine.step = async () => {
      const [request] = [...worker.engine.running.keys()];
      if (worker.engine.numSteps < 4 || request === undefined) return step();
      worker.engine.running.clear();
      return [{ kind: 'failed', request, error: { code: 'deadline_exceeded', message: 'too late' } }];
    };
    await expect(engine.chat.completions.create({ messages, n: 2 })).rejects.toMatchObject({
      code: 'deadline_exceeded',
    });
  });

  test('are in order, whichever ends first', async () => {
    const generation = new Generation(2, () => undefined);
    const totals = {
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, prompt_tokens_details: { cached_tokens: 0 } },
      timings: { queue_ms: 0, ttft_ms: 0, tpot_ms: null, prefill_tokens_per_s: null, decode_tokens_per_s: null },
      cache: { read_tokens: 0, written_tokens: 0, miss: null },
    };
    for (const choice of [1, 0]) {
      generation.push({ kind: 'text', request: 1, choice, text: `answer ${choice}` });
      generation.push({ kind: 'finished', request: 1, choice, reason: choice === 0 ? 'stop' : 'length', ...totals });
    }
    expect((await collect(generation)).choices).toEqual([
      { text: 'answer 0', reason: 'stop', calls: [] },
      { text: 'answer 1', reason: 'length', calls: [] },
    ]);
  });

  test('cost what the one that reused least had to compute', () => {
    const finish = (choice: number, cached: number, tpot_ms: number | null): FinishedEvent => ({
      ...{ kind: 'finished', request: 1, choice, reason: 'stop' },
      usage: {
        prompt_tokens: 10,
        completion_tokens: 2,
        total_tokens: 12,
        prompt_tokens_details: { cached_tokens: cached },
      },
      timings: {
        queue_ms: cached,
        ttft_ms: 20 - cached,
        tpot_ms,
        prefill_tokens_per_s: cached,
        decode_tokens_per_s: tpot_ms,
      },
      cache: { read_tokens: cached, written_tokens: 1, miss: null },
    });
    expect(combine([finish(0, 9, 4), finish(1, 2, null), finish(2, 9, 6)])).toEqual({
      usage: {
        prompt_tokens: 10,
        completion_tokens: 6,
        total_tokens: 16,
        prompt_tokens_details: { cached_tokens: 2 },
      },
      timings: { queue_ms: 2, ttft_ms: 11, tpot_ms: 5, prefill_tokens_per_s: 2, decode_tokens_per_s: 10 },
      cache: { read_tokens: 2, written_tokens: 3, miss: null },
    });
    expect(combine([finish(0, 1, null)]).timings).toMatchObject({ tpot_ms: null });
    expect(combine([finish(0, 1, null), finish(1, 1, null)]).timings).toMatchObject({
      tpot_ms: null,
      decode_tokens_per_s: null,
    });
  });
});
