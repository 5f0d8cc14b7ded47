import { describe, expect, test } from 'vitest';
import { Engine } from '../src/index.js';
import { CompletionLogprobList } from '../src/logprobs.js';
import { checkChatRequest, checkTextRequest } from '../src/request.js';
import { FakeWorker, fakeModel } from './fake.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;

async function start(answer: string): Promise<Engine> {
  const worker = new FakeWorker({ answer });
  return Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
}

const top = (token: string, logprob: number) => ({ token, logprob, bytes: [token.charCodeAt(0)] });

test('what is asked for is checked', () => {
  const chat = (fields: object) => checkChatRequest({ messages, ...fields }, []).engineRequest.logprobs;
  const text = (fields: object) => checkTextRequest({ prompt: 'a', ...fields }, []).engineRequest.logprobs;
  expect([chat({}), chat({ logprobs: false }), chat({ logprobs: true })]).toEqual([undefined, undefined, 0]);
  expect(chat({ logprobs: true, top_logprobs: 20 })).toBe(20);
  expect([text({}), text({ logprobs: null }), text({ logprobs: 0 }), text({ logprobs: 5 })]).toEqual([
    undefined,
    undefined,
    0,
    5,
  ]);
  expect(() => chat({ top_logprobs: 2 })).toThrowError('top_logprobs: only with logprobs: true');
  expect(() => chat({ logprobs: true, top_logprobs: 21 })).toThrowError('top_logprobs: an integer from 0 to 20');
  expect(() => chat({ logprobs: 3 })).toThrowError('logprobs: true or false');
  expect(() => text({ logprobs: true })).toThrowError('logprobs: an integer from 0 to 20');
  expect(() => text({ top_logprobs: 2 })).toThrowError('top_logprobs is not supported');
});

describe('chat', () => {
  test('tells of each token, at once and streamed, for every choice', async () => {
    const engine = await start('ab');
    const params = { messages, logprobs: true, top_logprobs: 2, n: 2 };
    const { choices } = await engine.chat.completions.create(params);
    const ofA = { ...top('a', 0), top_logprobs: [top('a', 0), top('b', -1)] };
    const ofB = { ...top('b', 0), top_logprobs: [top('b', 0), top('c', -1)] };
    expect(choices[0]?.logprobs).toEqual({ content: [ofA, ofB], refusal: null });
    expect(choices[1]?.logprobs?.content).toHaveLength(3);
    const seen = [[], []] as unknown[][];
    for await (const chunk of await engine.chat.completions.create({ ...params, stream: true })) {
      const [choice] = chunk.choices;
      seen[choice?.index ?? 0]?.push(...(choice?.logprobs?.content ?? []));
      if (choice?.delta.content !== undefined && choice.delta.content !== '') expect(choice.logprobs).not.toBeNull();
    }
    expect(seen).toEqual(choices.map((choice) => choice.logprobs?.content));
  });

  test('a token whose text is held back is told of all the same', async () => {
    const token = { token: '\\xf0\\x9f', logprob: -1, bytes: [0xf0, 0x9f], top_logprobs: [] };
    const events = [{ kind: 'text' as const, text: '', logprobs: [token] }];
    const worker = new FakeWorker({ script: { events, reason: 'stop' } });
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const stream = await engine.chat.completions.create({ messages, logprobs: true, stream: true });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk.choices[0]);
    expect(chunks[1]).toMatchObject({ delta: {}, logprobs: { content: [token] } });
  });
});

describe('completions', () => {
  test('tell of tokens in lists, the drawn one among the most probable', async () => {
    const engine = await start('ab');
    const { choices } = await engine.completions.create({ prompt: 'x', logprobs: 1 });
    expect(choices[0]?.logprobs).toEqual({
      tokens: ['a', 'b'],
      token_logprobs: [0, 0],
      top_logprobs: [{ a: 0 }, { b: 0 }],
      text_offset: [0, 1],
    });
    const none = await engine.completions.create({ prompt: 'x', logprobs: 0 });
    expect(none.choices[0]?.logprobs?.top_logprobs).toBeNull();
    const offsets = [];
    for await (const chunk of await engine.completions.create({ prompt: 'x', logprobs: 0, stream: true })) {
      offsets.push(...(chunk.choices[0]?.logprobs?.text_offset ?? []));
    }
    expect(offsets).toEqual([0, 1]);
  });

  test('offsets count characters, wherever tokens cut them', () => {
    const token = (bytes: number[]) => ({ token: '', logprob: 0, bytes, top_logprobs: [] });
    const list = new CompletionLogprobList(0);
    const tokens = [token([0x61, 0xf0, 0x9f]), token([0x98, 0x80]), token([0x62])];
    expect(list.next(tokens)?.text_offset).toEqual([0, 2, 2]);
    expect(list.next([token([0x63])])?.text_offset).toEqual([3]);
  });
});
