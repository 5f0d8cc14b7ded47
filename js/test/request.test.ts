import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { PagewiseError } from '../src/errors.js';
import { checkChatRequest, checkTextRequest } from '../src/request.js';

const messages = [{ role: 'user', content: 'Hi' }];
const check = (fields: object) => checkChatRequest({ messages, ...fields }, ['fake', 'Fake Model']);

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(PagewiseError);
    expect((error as PagewiseError).code).toBe('bad_request');
    return (error as PagewiseError).message;
  }
  throw new Error('was not refused');
}

describe("limits are the engine's", () => {
  test('a repetition_penalty that the engine would refuse is refused here', () => {
    expect(check({ repetition_penalty: 2 }).engineRequest.sampling.repetitionPenalty).toBe(2);
    expect(refusal(() => check({ repetition_penalty: 5 }))).toContain('over 0 to 2');
  });

  test('a max_tokens beyond 32 bits is refused by name', () => {
    for (const name of ['max_tokens', 'max_completion_tokens']) {
      expect(refusal(() => check({ [name]: Number.MAX_SAFE_INTEGER }))).toContain(`${name}: an integer from 1`);
    }
  });

  test('the holes of a list are refused by name', () => {
    expect(refusal(() => check({ messages: new Array(2) }))).toContain('messages[0]');
    expect(refusal(() => check({ stop: new Array(2) }))).toContain('stop');
    expect(refusal(() => check({ stop_token_ids: new Array(2) }))).toContain('stop_token_ids');
    expect(refusal(() => checkTextRequest({ prompt: new Array(2) }, []))).toContain('prompt');
  });
});

describe('a chat request', () => {
  test('takes the message of an answer as it came', () => {
    const answer = { role: 'assistant', content: 'Hello', refusal: null };
    expect(check({ messages: [...messages, answer] }).engineRequest.input).toEqual({
      messages: [...messages, { role: 'assistant', content: 'Hello' }],
    });
    const refused = { ...answer, refusal: 'no' };
    expect(refusal(() => check({ messages: [refused] }))).toBe(
      'messages[0].refusal: only null is supported, "no" given',
    );
  });

  test('gets the defaults that OpenAI documents', () => {
    const { engineRequest, stream, includeUsage } = check({});
    expect(engineRequest).toEqual({
      input: { messages },
      numChoices: 1,
      priority: 0,
      reportsProgress: false,
      sampling: {
        temperature: 1,
        topK: 0,
        topP: 1,
        minP: 0,
        repetitionPenalty: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        seed: expect.any(Number),
      },
      stop: [],
      stopTokenIds: [],
      logitBias: [],
      cache: { enabled: true, priority: 0, pin: false, salt: '', breakpoints: [] },
    });
    expect(Number.isSafeInteger(engineRequest.sampling.seed)).toBe(true);
    expect([stream, includeUsage]).toEqual([false, false]);
  });

  test('draws another seed every time unless one is given', () => {
    const seeds = new Set(Array.from({ length: 8 }, () => check({}).engineRequest.sampling.seed));
    expect(seeds.size).toBe(8);
    expect(check({ seed: -3 }).engineRequest.sampling.seed).toBe(-3);
  });

  test('passes every field on', () => {
    const { engineRequest, stream, includeUsage } = check({
      model: 'fake',
      temperature: 0,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.05,
      repetition_penalty: 1.1,
      frequency_penalty: -2,
      presence_penalty: 2,
      logit_bias: { 7: -100, '8': 1.5 },
      allowed_token_ids: [8, 9],
      seed: 42,
      max_tokens: 5,
      max_completion_tokens: 5,
      stop: ['a', 'b'],
      stop_token_ids: [2],
      stream: true,
      stream_options: { include_usage: true, include_progress: true },
      n: 2,
      priority: 'interactive',
      deadline_ms: 1000,
      timeout_ms: { queue: 5.5, total: 900 },
      user: 'u',
      metadata: {},
    });
    expect(engineRequest).toEqual({
      input: { messages },
      numChoices: 2,
      priority: 1,
      deadlineMs: 1000,
      queueTimeoutMs: 5.5,
      totalTimeoutMs: 900,
      reportsProgress: true,
      maxTokens: 5,
      sampling: {
        temperature: 0,
        topK: 40,
        topP: 0.9,
        minP: 0.05,
        repetitionPenalty: 1.1,
        frequencyPenalty: -2,
        presencePenalty: 2,
        seed: 42,
      },
      stop: ['a', 'b'],
      stopTokenIds: [2],
      allowedTokenIds: [8, 9],
      logitBias: [
        [7, -100],
        [8, 1.5],
      ],
      cache: { enabled: true, priority: 0, pin: false, salt: '', breakpoints: [] },
    });
    expect([stream, includeUsage]).toEqual([true, true]);
  });

  test('treats null and undefined as absent', () => {
    const { engineRequest } = check({
      temperature: null,
      top_p: undefined,
      stop: null,
      max_tokens: null,
      foo: undefined,
    });
    expect(engineRequest.sampling).toMatchObject({ temperature: 1, topP: 1 });
    expect(engineRequest).not.toHaveProperty('maxTokens');
  });

  test.each([
    [{}, 0],
    [{ priority: null }, 0],
    [{ priority: 'interactive' }, 1],
    [{ priority: 'normal' }, 0],
    [{ priority: 'batch' }, -1],
    [{ priority: -1000 }, -1000],
  ])('%j has its level', (fields, priority) => {
    expect(check(fields).engineRequest.priority).toBe(priority);
  });

  test('a timeout that is a number is the total; null is none', () => {
    expect(check({ timeout_ms: 7 }).engineRequest).toMatchObject({ totalTimeoutMs: 7 });
    const { engineRequest } = check({ deadline_ms: null, timeout_ms: { queue: null, total: undefined } });
    for (const name of ['deadlineMs', 'queueTimeoutMs', 'totalTimeoutMs'])
      expect(engineRequest).not.toHaveProperty(name);
    expect(check({ timeout_ms: { queue: 3 } }).engineRequest).not.toHaveProperty('totalTimeoutMs');
  });

  test('joins text parts and calls a developer a system', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ];
    const { engineRequest } = check({ messages: [{ role: 'developer', content, name: 'x' }] });
    expect(engineRequest.input).toEqual({ messages: [{ role: 'system', content: 'ab', name: 'x' }] });
  });

  test.each([
    [
      { functions: [] },
      'functions is not supported; supported are messages, max_completion_tokens, tools, tool_choice',
    ],
    [{ foo: null }, 'foo is not supported'],
    [{ temperature: 2.1 }, 'temperature: a number from 0 to 2 is needed, 2.1 given'],
    [{ temperature: Number.NaN }, 'temperature: a number from 0 to 2 is needed, NaN given'],
    [{ temperature: '1' }, 'temperature: a number from 0 to 2 is needed, "1" given'],
    [{ top_p: 0 }, 'top_p: a number over 0 to 1 is needed, 0 given'],
    [{ top_k: 1.5 }, 'top_k: an integer'],
    [{ max_tokens: 0 }, 'max_tokens: an integer from 1'],
    [{ max_tokens: 1, max_completion_tokens: 2 }, 'max_completion_tokens: 2 contradicts max_tokens: 1'],
    [{ logit_bias: { a: 1 } }, 'logit_bias: token ids are needed as keys, "a" given'],
    [{ logit_bias: { 1: 101 } }, 'logit_bias.1: a number from -100 to 100 is needed, 101 given'],
    [{ stream: true, stream_options: new Map() }, 'stream_options: a plain object'],
    [{ user: 3 }, 'user: a string is needed, 3 given'],
    [{ metadata: 'x' }, 'metadata: a plain object of strings is needed, "x" given'],
    [{ metadata: new Map([['a', 'b']]) }, 'metadata: a plain object'],
    [{ metadata: { a: 1 } }, 'metadata.a: a string of up to 512 characters is needed, 1 given'],
    [{ metadata: { a: 'x'.repeat(513) } }, 'metadata.a: a string of up to 512'],
    [{ metadata: { ['x'.repeat(65)]: '' } }, 'metadata: names of up to 64'],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, ''])) }, 'metadata: 17 entries given'],
    [{ stop: [''] }, 'stop: texts that are not empty are needed'],
    [{ stop: Array.from({ length: 17 }, String) }, 'stop: 17 texts given, 16 allowed'],
    [{ stop_token_ids: [-1] }, 'stop_token_ids: token ids'],
    [{ stream: 'yes' }, 'stream: true or false is needed'],
    [{ stream_options: { include_usage: true } }, 'stream_options: only with stream: true'],
    [{ stream: true, stream_options: { x: 1 } }, 'stream_options.x is not supported'],
    [{ n: 0 }, 'n: an integer from 1 to 16 is needed, 0 given'],
    [{ n: 17 }, 'n: an integer from 1 to 16 is needed, 17 given'],
    [{ n: 1.5 }, 'n: an integer from 1 to 16'],
    [
      { priority: 'high' },
      'priority: "interactive", "normal", "batch" or an integer from -1000 to 1000 is needed, "high"',
    ],
    [{ priority: 'toString' }, 'priority: '],
    [{ priority: 1001 }, 'priority: '],
    [{ priority: 0.5 }, 'priority: '],
    [{ deadline_ms: 0 }, 'deadline_ms: a number over 0'],
    [{ deadline_ms: '9' }, 'deadline_ms: a number over 0'],
    [{ timeout_ms: 0 }, 'timeout_ms: a number over 0'],
    [{ timeout_ms: Number.POSITIVE_INFINITY }, 'timeout_ms: a number over 0'],
    [{ timeout_ms: 'soon' }, 'timeout_ms: a number or {queue, total} is needed, "soon" given'],
    [{ timeout_ms: [1] }, 'timeout_ms: a number or {queue, total} is needed, a list of 1 given'],
    [{ timeout_ms: { wait: 1 } }, 'timeout_ms.wait is not supported; supported are queue, total'],
    [{ timeout_ms: { queue: -1 } }, 'timeout_ms.queue: a number over 0'],
    [{ stream: true, stream_options: { include_progress: 1 } }, 'include_progress: true or false is needed'],
    [{ model: 'gpt-4o' }, 'model: "gpt-4o" is not loaded; loaded is "fake" or "Fake Model"'],
    [{ messages: [] }, 'messages: a list of at least one message'],
    [{ messages: 'Hi' }, 'messages: a list of at least one message'],
    [{ messages: [{ role: 'robot', content: '' }] }, 'messages[0].role: one of system, developer, user, assistant'],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content: a string or a list of text parts'],
    [{ messages: [{ role: 'user', content: 'x', tool_calls: [] }] }, 'messages[0].tool_calls is not supported'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'messages[0].content[0]: only parts {type: "text", text} are supported, "image_url" given',
    ],
  ])('%j is refused', (fields, message) => {
    expect(refusal(() => check(fields))).toContain(message);
  });

  test.each([undefined, null, 3, []])('%j is no request', (params) => {
    expect(refusal(() => checkChatRequest(params, []))).toContain('a request object is needed');
  });
});

test.each([new Map([[7, 1]]), new Date(0), new Set([7]), Uint8Array.of(1), new Headers()])(
  'logit_bias as %o is refused, not taken as empty',
  (bias) => expect(refusal(() => check({ logit_bias: bias }))).toContain('logit_bias: a plain object'),
);

test.each([[[]], [7], [[-1]], [[1.5]], [['7']], [{ 0: 7 }]])('allowed_token_ids as %j is refused', (ids) => {
  expect(refusal(() => check({ allowed_token_ids: ids }))).toContain('allowed_token_ids');
});

test('plain objects without a prototype, or of another window, are plain', () => {
  const bias = Object.assign(Object.create(null), { 7: 1 });
  expect(check({ logit_bias: bias }).engineRequest.logitBias).toEqual([[7, 1]]);
  const other = runInNewContext('({ 7: 1 })');
  expect(check({ logit_bias: other }).engineRequest.logitBias).toEqual([[7, 1]]);
});

describe('a text request', () => {
  test('takes text or ids', () => {
    expect(checkTextRequest({ prompt: 'a' }, []).engineRequest.input).toEqual({ text: 'a' });
    expect(checkTextRequest({ prompt: [1, 2] }, []).engineRequest.input).toEqual({ ids: [1, 2] });
  });

  test.each([
    [{}, 'prompt: a string or a list of token ids is needed'],
    [{ prompt: [] }, 'prompt: an empty list'],
    [{ prompt: [{}] }, 'prompt: token ids'],
    [{ prompt: 'a', messages: [] }, 'messages is not supported; supported are prompt,'],
    [{ prompt: 'a', echo: true }, 'echo is not supported'],
  ])('%j is refused', (params, message) => {
    expect(refusal(() => checkTextRequest(params, []))).toContain(message);
  });
});

test('a list of one prompt is that prompt, of several an error', () => {
  const input = (prompt: unknown) => checkTextRequest({ prompt }, ['m']).engineRequest.input;
  expect([input(['a']), input([[1, 2]])]).toEqual([{ text: 'a' }, { ids: [1, 2] }]);
  expect(() => input(['a', 'b'])).toThrow('one prompt a request');
  expect(() => input([[]])).toThrow('empty list');
});
