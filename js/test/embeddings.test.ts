import { describe, expect, test, vi } from 'vitest';
import { checkEmbeddingRequest } from '../src/embedding-request.js';
import { createFetch, Engine, PagewiseError } from '../src/index.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

async function start(options: FakeOptions = {}): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker(options);
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  return { engine, worker };
}

const VALUES = [Math.fround(0.6), Math.fround(0.8)];

test('texts and token ids are embedded, each as a request of its own', async () => {
  const { engine, worker } = await start();
  const one = await engine.embeddings.create({ input: 'Hi', model: 'fake-model' });
  expect(one).toEqual({
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: VALUES }],
    model: 'fake-model',
    usage: { prompt_tokens: 3, total_tokens: 3 },
  });
  const sent = worker.received.at(-1);
  expect(sent).toMatchObject({
    type: 'submit',
    request: { input: { text: 'Hi' }, embeds: true, cache: { enabled: false } },
  });
  const many = await engine.embeddings.create({ input: Array.from({ length: 20 }, (_, index) => `text ${index}`) });
  expect(many.data.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, index) => index));
  expect(many.usage.prompt_tokens).toBe(60);
  expect((await engine.embeddings.create({ input: [1, 2] })).data).toHaveLength(1);
  expect((await engine.embeddings.create({ input: [[1, 2], [3]] })).data).toHaveLength(2);
});

test('base64 is of little-endian floats', async () => {
  const { engine } = await start();
  const { data } = await engine.embeddings.create({ input: 'Hi', encoding_format: 'base64' });
  const bytes = Uint8Array.from(atob(data[0]?.embedding as string), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  expect([view.getFloat32(0, true), view.getFloat32(4, true), bytes.length]).toEqual([...VALUES, 8]);
});

test.each([
  [{}, 'input: '],
  [{ input: '' }, 'input: an empty text'],
  [{ input: [] }, 'input: a text'],
  [{ input: ['a', ''] }, 'input[1]: an empty text'],
  [{ input: ['a', 1] }, 'input[1]: '],
  [{ input: [[]] }, 'input[0]: an empty list'],
  [{ input: [1, -1] }, 'input: token ids'],
  [{ input: new Array(2) }, 'input[0]: '],
  [{ input: Array.from({ length: 2049 }, () => 'a') }, 'input: 2049 texts given, 2048 allowed'],
  [{ input: 'a', dimensions: 256 }, 'dimensions is not supported'],
  [{ input: 'a', encoding_format: 'int8' }, 'encoding_format: "float" or "base64"'],
  [{ input: 'a', model: 'other' }, 'model: "other" is not loaded'],
])('%o is refused by name', (params, text) => {
  expect(() => checkEmbeddingRequest(params, ['fake'])).toThrowError(text);
});

test('one text that fails ends the others', async () => {
  const { engine, worker } = await start();
  const input = ['a', 'x'.repeat(2000), 'b'];
  await expect(engine.embeddings.create({ input })).rejects.toMatchObject({ code: 'context_too_long' });
  const signal = AbortSignal.abort();
  await expect(engine.embeddings.create({ input }, { signal })).rejects.toBeInstanceOf(PagewiseError);
  while (worker.engine.hasWork()) await new Promise((resolve) => setTimeout(resolve, 1));
});

describe('a queue with little room', () => {
  /** Refuses what goes beyond `room` texts; tells how many there were at once. */
  function limit(worker: FakeWorker, room: () => number, retryAfterMs = () => 5): { most: number; numRefused: number } {
    const seen = { most: 0, numRefused: 0 };
    const submit = worker.engine.submit.bind(worker.engine);
    worker.engine.submit = (...args) => {
      if (worker.engine.running.size >= room()) {
        seen.numRefused += 1;
        throw { code: 'queue_full', message: 'the queue is full', retryAfterMs: retryAfterMs() };
      }
      const tokens = submit(...args);
      seen.most = Math.max(seen.most, worker.engine.running.size);
      return tokens;
    };
    return seen;
  }
  const input = Array.from({ length: 20 }, (_, index) => `text ${index}`);

  test('a request of many texts takes what there is, and goes on', async () => {
    const { engine, worker } = await start();
    const seen = limit(worker, () => 3);
    const { data, usage } = await engine.embeddings.create({ input });
    expect(data.map(({ index }) => index)).toEqual(input.map((_, index) => index));
    expect([usage.prompt_tokens, seen]).toEqual([60, { most: 3, numRefused: 5 }]);
  });

  test('one that is full is the same error as for a chat request, and leaves nothing behind', async () => {
    const { engine, worker } = await start();
    let room = 0;
    limit(worker, () => room);
    const full = { code: 'queue_full', retriable: true, retryAfterMs: 5 };
    await expect(engine.embeddings.create({ input })).rejects.toMatchObject(full);
    await expect(engine.chat.completions.create({ messages: [{ role: 'user', content: 'x' }] })).rejects.toMatchObject(
      full,
    );
    expect(worker.engine.running.size).toBe(0);
    const response = await createFetch(engine)('https://api.openai.com/v1/embeddings', {
      method: 'POST',
      body: JSON.stringify({ input }),
    });
    expect([response.status, response.headers.get('retry-after-ms')]).toEqual([429, '5']);
    room = 1;
    expect((await engine.embeddings.create({ input })).data).toHaveLength(20);
  });

  test('room that others have taken in the middle is waited for, until an abort', async () => {
    const { engine, worker } = await start();
    let isTaken = false;
    let numDone = 0;
    let waitMs = 5;
    const seen = limit(
      worker,
      () => (isTaken ? 0 : 1),
      () => waitMs,
    );
    const step = worker.engine.step.bind(worker.engine);
    worker.engine.step = async () => {
      const events = await step();
      numDone += events.filter(({ kind }) => kind === 'finished').length;
      isTaken ||= numDone === 3;
      return events;
    };
    const whole = engine.embeddings.create({ input: input.slice(0, 6) });
    await vi.waitFor(() => expect([numDone, seen.numRefused >= 8]).toEqual([3, true]));
    isTaken = false;
    numDone = 10;
    expect((await whole).data).toHaveLength(6);
    [numDone, seen.numRefused, waitMs] = [0, 0, 1e6];
    const controller = new AbortController();
    const left = engine.embeddings.create({ input }, { signal: controller.signal });
    await vi.waitFor(() => expect([numDone, seen.numRefused]).toEqual([3, 8]));
    await engine.metrics();
    controller.abort();
    await expect(left).rejects.toMatchObject({ code: 'cancelled' });
  });
});

test("OpenAI's clients find them under /v1/embeddings", async () => {
  const { engine } = await start();
  const fetch = createFetch(engine);
  const post = (body: object) =>
    fetch('https://api.openai.com/v1/embeddings', { method: 'POST', body: JSON.stringify(body) });
  const answer = await post({ model: 'fake-model', input: ['a', 'b'], encoding_format: 'base64' });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ object: 'list', data: [{ index: 0 }, { index: 1 }] });
  const long = await post({ input: 'x'.repeat(2000) });
  expect([long.status, (await long.json()).error]).toMatchObject([
    400,
    { param: 'input', code: 'context_length_exceeded', type: 'invalid_request_error' },
  ]);
  const dimensions = await post({ input: 'a', dimensions: 2 });
  expect((await dimensions.json()).error).toMatchObject({ param: 'dimensions', code: 'unsupported_parameter' });
});

test('a deadline is of the whole request, not of each text', async () => {
  const { engine, worker } = await start();
  vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(400);
  await engine.embeddings.create({ input: ['a', 'b'], deadline_ms: 1000, timeout_ms: { queue: 50, total: 300 } });
  const sent = worker.received.flatMap((message) => (message.type === 'submit' ? [message.request] : []));
  expect(
    sent.map(({ deadlineMs, queueTimeoutMs, totalTimeoutMs }) => [deadlineMs, queueTimeoutMs, totalTimeoutMs]),
  ).toEqual([
    [600, 50, 0],
    [600, 50, 0],
  ]);
  vi.restoreAllMocks();
});
