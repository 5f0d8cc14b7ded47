import type { EmbeddingModelV4, LanguageModelV4, ProviderV4 } from '@ai-sdk/provider';
import { embedMany, generateText, streamText } from 'ai';
import { afterEach, beforeEach, expect, expectTypeOf, test, vi } from 'vitest';
import { type ChatEngine, createPagewise, type PagewiseProvider } from '../src/ai-sdk.js';
import { mapCall } from '../src/ai-sdk-request.js';
import { type ChatCompletionChunk, Engine } from '../src/index.js';
import type { Router } from '../src/remote.js';
import { FakeWorker, fakeModel } from './fake.js';

let worker: FakeWorker;
let engine: Engine;
let pagewise: PagewiseProvider;

beforeEach(async () => {
  worker = new FakeWorker();
  engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
  pagewise = createPagewise(engine);
});
afterEach(() => engine.unload());

const submitted = (): unknown =>
  worker.received.flatMap((message) => (message.type === 'submit' ? [message.request] : [])).at(-1);

test("the types are the SDK's", () => {
  expectTypeOf<ReturnType<PagewiseProvider['languageModel']>>().toExtend<LanguageModelV4>();
  expectTypeOf<ReturnType<PagewiseProvider['embeddingModel']>>().toExtend<EmbeddingModelV4>();
  expectTypeOf<PagewiseProvider>().toExtend<ProviderV4>();
  expectTypeOf<Engine>().toExtend<ChatEngine>();
  expectTypeOf<Router>().toExtend<ChatEngine>();
});

test('generateText: text, reason, usage with cached tokens, and what is ours', async () => {
  const result = await generateText({
    model: pagewise(),
    instructions: 'Be brief',
    prompt: 'Hi',
    temperature: 0,
    maxOutputTokens: 4,
    topK: 5,
    seed: 7,
    stopSequences: ['x'],
    providerOptions: { pagewise: { priority: 'batch', cache: { salt: 'a' } } },
  });
  expect([result.text, result.finishReason, result.warnings]).toEqual(['Hell', 'length', []]);
  expect(result.usage).toMatchObject({ inputTokens: 3, outputTokens: 4, totalTokens: 7 });
  expect(result.usage.inputTokenDetails).toMatchObject({ cacheReadTokens: 2, noCacheTokens: 1 });
  expect(result.providerMetadata?.pagewise).toMatchObject({ timings: { ttft_ms: 2 }, cache: { read_tokens: 2 } });
  expect(result.response).toMatchObject({ id: expect.stringMatching(/^chatcmpl-/), modelId: 'fake-model' });
  expect(submitted()).toMatchObject({
    input: {
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Hi' },
      ],
    },
    maxTokens: 4,
    sampling: { temperature: 0, topK: 5, seed: 7 },
    stop: ['x'],
    priority: -1,
    cache: { salt: 'a' },
  });
});

test('streamText: piece by piece', async () => {
  const result = streamText({ model: pagewise('fake-model'), prompt: 'Hi' });
  const pieces: string[] = [];
  for await (const piece of result.textStream) pieces.push(piece);
  expect(pieces).toEqual(['H', 'e', 'l', 'l', 'o']);
  expect(await result.finishReason).toBe('stop');
  expect(await result.usage).toMatchObject({ inputTokens: 3, outputTokens: 5 });
});

test('an abort reaches the engine and is the SDK’s', async () => {
  const abort = new AbortController();
  const onAbort = vi.fn();
  const onError = vi.fn();
  const { textStream } = streamText({ model: pagewise(), prompt: 'Hi', abortSignal: abort.signal, onAbort, onError });
  for await (const _ of textStream) abort.abort();
  expect([onAbort.mock.calls.length, onError.mock.calls.length]).toEqual([1, 0]);
  expect(worker.received.some(({ type }) => type === 'cancel')).toBe(true);
  const leave = new AbortController();
  const hi = [{ role: 'user' as const, content: 'Hi' }];
  const reader = (await pagewise().doStream({ prompt: hi, abortSignal: leave.signal })).stream.getReader();
  await reader.read();
  leave.abort();
  const last: unknown[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) last.push(part.value);
  expect(last.at(-1)).toMatchObject({ type: 'error', error: { name: 'AbortError' } });
  const late = generateText({ model: pagewise(), prompt: 'Hi', abortSignal: abort.signal });
  await expect(late).rejects.toMatchObject({ name: 'AbortError' });
});

test('errors are ours, and are not tried again', async () => {
  const tooHot = generateText({ model: pagewise(), prompt: 'Hi', temperature: 3 });
  await expect(tooHot).rejects.toMatchObject({ name: 'PagewiseError', code: 'bad_request' });
  const tooLong = generateText({ model: pagewise(), prompt: 'x'.repeat(2000) });
  await expect(tooLong).rejects.toMatchObject({ code: 'context_too_long' });
  const image = { type: 'file' as const, data: new Uint8Array([1]), mediaType: 'image/png' };
  const picture = generateText({ model: pagewise(), messages: [{ role: 'user', content: [image] }] });
  await expect(picture).rejects.toThrow('a part of type "file" is not supported');
  expect(() => pagewise('other')).toThrow('"fake-model" is loaded, "other" asked');
  expect(() => pagewise.embeddingModel('x')).toThrow('"fake-model" is loaded, "x" asked');
  expect(() => pagewise.imageModel('x')).toThrow('language and embedding models only');
});

test('log-probabilities and cached tokens, which the SDK has no place for, are in the metadata', async () => {
  const model = pagewise();
  const providerOptions = { pagewise: { logprobs: true, top_logprobs: 1 } };
  const result = await generateText({ model, prompt: 'Hi', maxOutputTokens: 2, providerOptions });
  const token = (text: string): object => {
    const own = { token: text, logprob: 0, bytes: [text.charCodeAt(0)] };
    return { ...own, top_logprobs: [own] };
  };
  expect(result.providerMetadata?.pagewise).toMatchObject({ cached_tokens: 2, logprobs: [token('H'), token('e')] });
  const streamed = streamText({ model, prompt: 'Hi', providerOptions });
  await streamed.consumeStream();
  expect((await streamed.providerMetadata)?.pagewise?.logprobs).toHaveLength(5);
  const plain = await generateText({ model, prompt: 'Hi' });
  expect(plain.providerMetadata?.pagewise).not.toHaveProperty('logprobs');
});

test('embedMany: texts in order, tokens, and what is not supported', async () => {
  const model = pagewise.embeddingModel('fake-model');
  const values = Array.from({ length: 12 }, (_, index) => `text ${index}`);
  const providerOptions = { pagewise: { priority: 'batch' } };
  const { embeddings, usage } = await embedMany({ model, values, providerOptions });
  expect(embeddings).toEqual(values.map(() => [Math.fround(0.6), Math.fround(0.8)]));
  expect(usage).toEqual({ tokens: 36 });
  expect(submitted()).toMatchObject({ embeds: true, priority: -1 });
  expect(await model.doEmbed({ values: [] })).toEqual({ embeddings: [], usage: { tokens: 0 }, warnings: [] });
  const { warnings } = await model.doEmbed({ values: ['a'], dimensions: 2 });
  expect(warnings).toEqual([{ type: 'unsupported', feature: 'dimensions' }]);
  const aborted = model.doEmbed({ values, abortSignal: AbortSignal.abort() });
  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
  await expect(model.doEmbed({ values: ['x'.repeat(2000)] })).rejects.toMatchObject({ code: 'context_too_long' });
  const without = createPagewise({ info: engine.info, chat: engine.chat });
  expect(() => without.embeddingModel()).toThrow('has no embeddings');
});

test('embeddings keep their order, whatever order they come in, and none may be missing', async () => {
  const answer = (...indices: number[]) => {
    const data = indices.map((index) => ({ object: 'embedding' as const, index, embedding: [index] }));
    return {
      object: 'list' as const,
      data,
      model: 'm',
      usage: { prompt_tokens: 2, total_tokens: 2 },
      computed_on: 'remote',
    };
  };
  const given = [answer(1, 0), answer(1)];
  const embeddings = { create: async () => given.shift() ?? answer() };
  const model = createPagewise({ info: engine.info, chat: engine.chat, embeddings }).embeddingModel();
  const found = await model.doEmbed({ values: ['a', 'b'] });
  expect([found.embeddings, found.providerMetadata]).toEqual([[[0], [1]], { pagewise: { computed_on: 'remote' } }]);
  await expect(model.doEmbed({ values: ['a', 'b'] })).rejects.toMatchObject({ code: 'wrong_result' });
});

test('a stream that breaks off ends in an error', async () => {
  const onError = vi.fn();
  const { textStream } = streamText({ model: pagewise(), prompt: 'Hi', onError });
  for await (const _ of textStream) void engine.unload();
  expect(onError.mock.calls).toMatchObject([[{ error: { code: 'cancelled' } }]]);
});

test('tools, their choice, calls and results, and formats become fields of a request', () => {
  const inputSchema = { type: 'object', properties: { city: { type: 'string' } } };
  const { params, warnings } = mapCall({
    prompt: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Weather?', providerOptions: { pagewise: { cache_control: { type: 'ephemeral' } } } },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm' },
          { type: 'tool-call', toolCallId: '1', toolName: 'weather', input: { city: 'Rome' } },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: '1', toolName: 'weather', output: { type: 'json', value: { sun: true } } },
        ],
      },
    ],
    tools: [
      { type: 'function', name: 'weather', description: 'Tells it', inputSchema },
      { type: 'provider', name: 'search' },
    ],
    toolChoice: { type: 'tool', toolName: 'weather' },
    responseFormat: { type: 'json', schema: inputSchema },
    reasoning: 'high',
  });
  expect(params).toEqual({
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Weather?', cache_control: { type: 'ephemeral' } }] },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: '1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
      },
      { role: 'tool', tool_call_id: '1', content: '{"sun":true}' },
    ],
    tools: [{ type: 'function', function: { name: 'weather', description: 'Tells it', parameters: inputSchema } }],
    tool_choice: { type: 'function', function: { name: 'weather' } },
    response_format: { type: 'json_schema', json_schema: { name: 'response', schema: inputSchema, strict: true } },
  });
  expect(warnings.map(({ feature }) => feature)).toEqual(['reasoning', 'provider-defined tool search']);
});

test('streamed calls of tools are put together', async () => {
  const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' } as const;
  const call = (tool_call: object, finish_reason: string | null = null): unknown => {
    return { ...head, choices: [{ index: 0, delta: { tool_calls: [tool_call] }, finish_reason, logprobs: null }] };
  };
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 2,
    total_tokens: 5,
    prompt_tokens_details: { cached_tokens: 0 },
  };
  const chunks = [
    call({ index: 0, id: 'a', type: 'function', function: { name: 'weather', arguments: '' } }),
    call({ index: 0, function: { arguments: '{"city":' } }),
    call({ index: 0, function: { arguments: '"Rome"}' } }, 'tool_calls'),
    { ...head, choices: [], usage },
  ] as ChatCompletionChunk[];
  async function* stream(): AsyncGenerator<ChatCompletionChunk> {
    yield* chunks;
  }
  const model = createPagewise({ info: { id: 'm' }, chat: { completions: { create: async () => stream() } } })();
  const { content, finishReason } = await model.doGenerate({ prompt: [] });
  expect(content).toEqual([{ type: 'tool-call', toolCallId: 'a', toolName: 'weather', input: '{"city":"Rome"}' }]);
  expect(finishReason).toEqual({ unified: 'tool-calls', raw: 'tool_calls' });
});

test('a call that could not be read is text, and no call', async () => {
  const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' } as const;
  const piece = (delta: object, more: object = {}): unknown => {
    return { ...head, choices: [{ index: 0, delta, finish_reason: null, logprobs: null, ...more }] };
  };
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 2,
    total_tokens: 5,
    prompt_tokens_details: { cached_tokens: 0 },
  };
  const begun = { index: 0, id: 'a', type: 'function', function: { name: 'weather', arguments: '{"c":' } };
  const tool_call_error = { code: 'malformed', message: 'no JSON', index: 0 };
  const chunks = [
    piece({ tool_calls: [begun] }),
    piece({ content: '<tool_call>{"c":' }, { tool_call_error }),
    piece({}, { finish_reason: 'stop' }),
    { ...head, choices: [], usage },
  ] as ChatCompletionChunk[];
  async function* stream(): AsyncGenerator<ChatCompletionChunk> {
    yield* chunks;
  }
  const model = createPagewise({ info: { id: 'm' }, chat: { completions: { create: async () => stream() } } })();
  const { content, finishReason } = await model.doGenerate({ prompt: [] });
  expect(content).toEqual([{ type: 'text', text: '<tool_call>{"c":' }]);
  expect(finishReason.unified).toBe('stop');
});

test('servers that tell of no usage, or of it with every chunk', async () => {
  const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'far' };
  const usage = (completion_tokens: number): object => {
    return { prompt_tokens: 1, completion_tokens, prompt_tokens_details: { cached_tokens: 0 } };
  };
  const chunk = (content: string, finish_reason: string | null, more: object = {}): object => {
    return { ...head, choices: [{ index: 0, delta: { content }, finish_reason }], ...more };
  };
  const serve = async (...chunks: object[]) => {
    const create = async () =>
      (async function* () {
        yield* chunks;
      })();
    const far = { info: { id: 'far' }, chat: { completions: { create } } } as unknown as ChatEngine;
    return generateText({ model: createPagewise(far)(), prompt: 'Hi' });
  };
  const without = await serve(chunk('a', null), chunk('b', 'stop'));
  expect([without.text, without.finishReason, without.usage.outputTokens]).toEqual(['ab', 'stop', undefined]);
  const each = await serve(chunk('a', null, { usage: usage(1) }), chunk('b', 'length', { usage: usage(2) }));
  expect([each.text, each.finishReason, each.usage.outputTokens]).toEqual(['ab', 'length', 2]);
});
