// What handing a decode step to the GPU costs the CPU in WebAssembly: writing its inputs, encoding, submitting.
//
//   npm run build && node benches/encode/run.mjs [--tokens 48] [--browser chromium] [--rounds 3] [--model tiny]
//
// `cargo run --release -- bench` prints the same natively. The page is cross-origin isolated, because browsers round their
// clocks much less then.
import assert from 'node:assert/strict';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { defaultModel, ensureModel } from '../../scripts/models.mjs';
import { models, pageDist, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from '../../tests/browser/launch.mjs';

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '48' },
    browser: { type: 'string', default: 'chromium' },
    rounds: { type: 'string', default: '3' },
    model: { type: 'string', default: 'default' },
  },
});
const [numTokens, numRounds] = [values.tokens, values.rounds].map(Number);
assert.ok(numTokens >= 16 && numTokens <= 500 && numRounds >= 1, '--tokens from 16 to 500, --rounds from 1');

const file = values.model === 'tiny' ? 'tiny-llama-f16.gguf' : defaultModel().sources[0];
if (values.model !== 'tiny') await ensureModel(defaultModel());
const mounts = {
  '/models/': models,
  '/js/': path.join(root, 'js'),
  '/bench/': path.join(root, 'benches/encode/page'),
  '/': pageDist,
};
const server = await serve({ mounts, headers: { 'cross-origin-embedder-policy': 'require-corp' } });
const { page, browser, close } = await launch({ browser: values.browser });
try {
  await page.goto(`${server.url}bench/`);
  await page.waitForFunction(() => globalThis.bench);
  const lines = [];
  let found;
  for (let round = 1; round <= numRounds; round++) {
    found = await page.evaluate((...args) => globalThis.bench.run(...args), `/models/${file}`, [1, 2, 4], numTokens);
    assert.ok(found.isIsolated, 'the page is not isolated: its clock is too coarse');
    for (const { num, encodeMs } of found.rows) {
      const sorted = encodeMs.sort((a, b) => a - b);
      assert.ok(sorted.length > 0, `no step decodes ${num} sequences`);
      const mean = sorted.reduce((a, b) => a + b, 0) / sorted.length;
      const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
      const cells = [at(0), at(0.5), mean, at(0.95)].map((ms) => ms.toFixed(2));
      lines.push(`| ${[`${num}, round ${round}`, sorted.length, ...cells].join(' | ')} |`);
    }
  }
  const { description, architecture } = found.adapter;
  console.log(`${file}, ${await browser.version()}, ${description || architecture}\n`);
  console.log('| sequences | steps | fastest, ms | median | mean | P95 |');
  console.log('| --- | --: | --: | --: | --: | --: |');
  console.log(lines.join('\n'));
} finally {
  await close();
  await server.close();
}
