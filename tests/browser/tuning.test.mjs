// Kernels are chosen by timing them once, remembered in the browser, and by a table where that is wanted.
//
// BROWSER=chromium|firefox. PAGEWISE_LONG=1: what rounds in Chromium as well.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BROWSER, usePackage } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';

describe(`the choice of kernels in ${BROWSER}`, () => {
  const opened = usePackage();
  const load = async (options = {}) => {
    const { tuning } = await opened.call('load', MODEL, { contextLength: 256, ...options });
    return tuning;
  };
  const answer = () =>
    opened.page.evaluate(async () => {
      const request = { prompt: [5, 6, 7, 8, 9, 10, 11, 12], max_tokens: 8, temperature: 0 };
      return (await globalThis.test.engine().completions.create(request)).choices[0].text;
    });

  test('is measured by the first load and remembered over a reload of the page', async () => {
    const measured = await load();
    assert.equal(measured.source, 'measured');
    assert.ok(measured.tuneMs > 0 && measured.fewRows !== '' && measured.manyRows !== '');
    const text = await answer();
    await opened.page.reload();
    await opened.page.waitForFunction(() => globalThis.test);
    const remembered = await load();
    assert.deepEqual(remembered, { ...measured, source: 'remembered', tuneMs: 0 });
    assert.equal(await answer(), text);
  });

  test('is the table, and the same every time, without autotune', async () => {
    const first = await load({ autotune: false });
    assert.deepEqual([first.source, first.tuneMs], ['table', 0]);
    assert.deepEqual(await load({ autotune: false }), first);
    assert.ok((await answer()).length > 0);
  });

  // Half a minute of compiling on SwiftShader; Firefox always does it.
  const skip = BROWSER === 'chromium' && process.env.PAGEWISE_LONG !== '1' ? 'only with npm run test:long' : false;
  test('rounds only where that was asked for, and is remembered apart', { skip }, async () => {
    const fast = await load({ precision: 'fast' });
    assert.equal(fast.source, 'measured');
    assert.ok((await answer()).length > 0);
    assert.equal((await load({ precision: 'fast' })).source, 'remembered');
    const full = await load();
    assert.equal(full.source, 'remembered');
    assert.doesNotMatch(`${full.fewRows} ${full.manyRows}`, /bytes|f16/);
    assert.deepEqual(opened.problems, []);
  });
});
