import { expect, test, vi } from 'vitest';
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
