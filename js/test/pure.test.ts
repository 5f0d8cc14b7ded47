import { beforeEach, expect, test } from 'vitest';
import { explainMiss, kvMemory, PagewiseError, simulate } from '../src/index.js';
import { type PureModule, useModule } from '../src/module.js';

const calls: unknown[][] = [];
let starts = 0;

const fake: PureModule = {
  explainMiss: (...prompts) => {
    calls.push(prompts);
    return { cause: 'identical' };
  },
  kvMemory: (params) => {
    throw { code: 'bad_request', message: `params: ${params}` };
  },
  simulate: (params) => {
    calls.push([params]);
    if (params.includes('0')) throw { code: 'bad_request', message: 'max_running: 0 asked, 1 to 1024 allowed' };
    return { steps: [] };
  },
};

beforeEach(() => {
  calls.length = 0;
  starts = 0;
  useModule(async () => {
    starts += 1;
    return fake;
  });
});

test('prompts cross as JSON, and the module is started once', async () => {
  const messages = [{ role: 'user', content: 'Hi', name: undefined }];
  expect(await explainMiss(messages, { messages })).toEqual({ cause: 'identical' });
  await Promise.all([explainMiss('a', 'b'), explainMiss('a', 'b')]);
  expect(calls.slice(0, 2)).toEqual([
    ['[{"role":"user","content":"Hi"}]', '{"messages":[{"role":"user","content":"Hi"}]}'],
    ['"a"', '"b"'],
  ]);
  expect(starts).toBe(1);
});

test('what is no JSON is refused', async () => {
  const circular: object[] = [];
  circular.push(circular);
  for (const prompt of [undefined as never, circular]) {
    await expect(explainMiss('a', prompt)).rejects.toMatchObject({ code: 'bad_request' });
  }
  expect(starts).toBe(0);
});

test('halves of characters are U+FFFD, as they are on the way to the engine', async () => {
  await explainMiss([{ role: 'user', content: 'a\ud83d' }], 'b😀');
  expect(calls[0]).toEqual(['[{"role":"user","content":"a\ufffd"}]', '"b😀"']);
});

test.each<[object, RegExp]>([
  [{ contextLength: null }, /contextLength: an integer is needed, null given/],
  [{ contextLength: undefined }, /contextLength: an integer is needed, undefined given/],
  [{ contextLength: Number.NaN }, /contextLength.*NaN given/],
  [{ numLayers: 1e10 }, /numLayers.*10000000000 given/],
  [{ window: '5' }, /window.*"5" given/],
  [{ kv: 16 }, /kv.*16 given/],
  [{ layers: 1 }, /params\.layers is not supported/],
])('a number that cannot be is refused by name: %j', async (change, message) => {
  const params = { numLayers: 1, kvHeads: 1, headDim: 1, contextLength: 1, ...change };
  await expect(kvMemory(params as never)).rejects.toMatchObject({
    code: 'bad_request',
    message: expect.stringMatching(message),
  });
  expect(starts).toBe(0);
});

test("the module's errors are the package's", async () => {
  const params = { numLayers: 1, kvHeads: 1, headDim: 1, contextLength: 1 };
  const error = await kvMemory(params).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(PagewiseError);
  expect(error).toMatchObject({ code: 'bad_request', message: `params: ${JSON.stringify(params)}` });
});

test('a module that could not be started is started again', async () => {
  useModule(async () => {
    starts += 1;
    if (starts === 1) throw new Error('404');
    return fake;
  });
  await expect(explainMiss('a', 'b')).rejects.toMatchObject({ code: 'network', message: expect.stringMatching(/404/) });
  expect(await explainMiss('a', 'b')).toEqual({ cause: 'identical' });
});

test('a simulation crosses with the names that files have, and errors come back with those of the page', async () => {
  const arrivals = { kind: 'poisson', perS: 4 } as const;
  const lengths = { mean: 3, spread: 1, min: 1, max: 5 };
  const classes = [{ name: 'numA', share: 1, prompt: lengths, answer: lengths, priority: 1 }];
  const workload = { seed: 1, numRequests: 2, arrivals, classes, sharedPrefixTokens: 3 };
  expect(await simulate({ workload, machine: 'server', kvTokens: undefined as never })).toEqual({ steps: [] });
  const sent = JSON.parse(calls[0]?.[0] as string);
  expect(sent).toEqual({
    workload: { seed: 1, num_requests: 2, arrivals: { kind: 'poisson', per_s: 4 }, classes, shared_prefix_tokens: 3 },
    machine: 'server',
  });
  await expect(simulate({ maxRunning: 0 })).rejects.toMatchObject({
    code: 'bad_request',
    message: 'maxRunning: 0 asked, 1 to 1024 allowed',
  });
  await expect(simulate([] as never)).rejects.toMatchObject({ code: 'bad_request' });
});
