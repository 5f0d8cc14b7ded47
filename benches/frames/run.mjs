// Does a page keep drawing while a prompt is computed? Frame gaps with and without the adaptive step.
//
//   npm run build && node benches/frames/run.mjs [--tokens 2048] [--browser chromium] [--rounds 2] [--model tiny]
//
// Each round runs every setting once, so that the machine's load is shared. Gaps are between calls of
// requestAnimationFrame in milliseconds; without any work they are 16.7 on a display of 60 Hz.
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { defaultModel, ensureModel } from '../../scripts/models.mjs';
import { models, pageDist, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from '../../tests/browser/launch.mjs';

const SETTINGS = [
  ['off (whole steps, one submission)', null],
  ['30 ms', 30],
];

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '2048' },
    browser: { type: 'string', default: 'chromium' },
    rounds: { type: 'string', default: '2' },
    model: { type: 'string', default: 'default' },
  },
});
const [numTokens, numRounds] = [values.tokens, values.rounds].map(Number);
assert.ok(numTokens >= 64 && numRounds >= 1, '--tokens from 64 and --rounds from 1 are needed');

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

function row(name, { gaps, numSteps, ttftMs }) {
  const sorted = [...gaps].sort((a, b) => a - b);
  const ms = (value) => (value === undefined ? '' : value.toFixed(value < 1000 ? 1 : 0));
  const cells = [name, gaps.length, ...[0.5, 0.95, 0.99, 1].map((q) => ms(quantile(sorted, q))), numSteps ?? ''];
  return `| ${[...cells, ms(ttftMs)].join(' | ')} |`;
}

const file = values.model === 'tiny' ? 'tiny-llama-f16.gguf' : defaultModel().sources[0];
if (values.model !== 'tiny') await ensureModel(defaultModel());
const mounts = {
  '/models/': models,
  '/js/': path.join(root, 'js'),
  '/bench/': path.join(root, 'benches/frames/page'),
  '/': pageDist,
};
const server = await serve({ mounts });
const { page, browser, close } = await launch({ browser: values.browser });
try {
  await page.goto(`${server.url}bench/`);
  await page.waitForFunction(() => globalThis.bench);
  const run = (name, ...args) => page.evaluate((n, a) => globalThis.bench[n](...a), name, args);
  const rows = [row('no work', await run('idle', 5000))];
  // An adapter that computes on the CPU takes the cores that draw: what that alone does to frames.
  const numCores = availableParallelism();
  rows.push(row(`no engine, ${numCores} busy workers`, await run('busy', 20_000, numCores)));
  let adapter;
  for (let round = 1; round <= numRounds; round++) {
    for (const [name, target] of SETTINGS) {
      const result = await run('run', `/models/${file}`, target, numTokens);
      assert.ok(result.numSteps > 0);
      adapter = result.adapter;
      rows.push(row(`${name}, round ${round}`, result));
    }
  }
  console.log(
    `${numTokens} tokens, ${file}, ${await browser.version()}, ${adapter.description || adapter.architecture}\n`,
  );
  console.log('| step target | frames | median gap | P95 | P99 | longest | steps | TTFT |');
  console.log('| --- | --: | --: | --: | --: | --: | --: | --: |');
  console.log(rows.join('\n'));
} finally {
  await close();
  await server.close();
}
