// What needs no engine and no GPU works in a page, under the strict policy: the module starts there by itself.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BROWSER, usePackage } from './package.mjs';

describe(`the package's tools in ${BROWSER}`, () => {
  const opened = usePackage();

  test('the prompt doctor', async () => {
    const found = await opened.page.evaluate(() =>
      globalThis.test.explainMiss([{ role: 'system', content: 'It is 10:00.' }], {
        messages: [{ role: 'system', content: 'It is 10:05.', name: undefined }],
      }),
    );
    assert.equal(found.cause, 'timestamp');
    assert.deepEqual([found.previous.text, found.next.text], ['10:00', '10:05']);
    assert.deepEqual(found.place, { part: 'message', message: 0, role: 'system', character: 10 });
    const code = await opened.page.evaluate(() => globalThis.test.explainMiss(3, 'a').catch(({ code }) => code));
    assert.equal(code, 'bad_request');
    assert.deepEqual(opened.problems, []);
  });

  test('the simulator', async () => {
    const run = (params) => opened.page.evaluate((p) => globalThis.test.simulate(p), params);
    const lengths = (mean) => ({ mean, spread: 0, min: 1, max: 100 });
    const classes = [{ name: 'chat', share: 1, prompt: lengths(40), answer: lengths(3), priority: 0 }];
    const arrivals = { kind: 'at_once' };
    const workload = { seed: 1, numRequests: 3, arrivals, classes, sharedPrefixTokens: 0 };
    const settings = { workload, machine: 'integrated', contextLength: 128, kvTokens: 1024, maxRunning: 2 };
    const { report, requests, steps } = await run({ ...settings, batching: 'static', budgetTokens: 64, numTraced: 2 });
    // Two together: 80 tokens of prompts in two steps, then two more tokens; the third alone, in three steps.
    const shape = steps.map(({ numTokens, numSequences, numWaiting }) => [numTokens, numSequences, numWaiting]);
    assert.deepEqual(shape.slice(0, 2), [
      [64, 2, 1],
      [17, 2, 1],
    ]);
    assert.deepEqual(shape.slice(-3), [
      [40, 1, 0],
      [1, 1, 0],
      [1, 1, 0],
    ]);
    assert.deepEqual(steps[0].parts, [
      { request: 0, start: 0, end: 40, numPrompt: 40, samples: true },
      { request: 1, start: 0, end: 24, numPrompt: 40, samples: false },
    ]);
    assert.deepEqual(steps.at(-1).parts, [], 'the third is not traced');
    assert.deepEqual([report.numRequests, report.promptTokens, report.generatedTokens], [3, 120, 9]);
    assert.ok(requests[2].startMs >= requests[0].endMs && requests[0].firstTokenMs < requests[1].firstTokenMs);
    const error = (params) =>
      opened.page.evaluate((p) => globalThis.test.simulate(p).catch(({ code, message }) => [code, message]), params);
    assert.deepEqual(await error({ maxRunning: 0 }), ['bad_request', 'maxRunning: 0 asked, 1 to 1024 allowed']);
    assert.equal((await error({ slots: 3 }))[0], 'bad_request');
    assert.deepEqual(opened.problems, []);
  });

  test('the memory calculator', async () => {
    const params = { numLayers: 80, kvHeads: 8, headDim: 128, contextLength: 131_072, kv: 'f16' };
    const { totalBytes } = await opened.page.evaluate((p) => globalThis.test.kvMemory(p), params);
    assert.equal(totalBytes, 40 * 2 ** 30);
    assert.deepEqual(opened.problems, []);
  });
});
