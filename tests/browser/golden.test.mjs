// The npm package in a real browser computes what the reference says: logits of the tiny and of the real models.
//
// BROWSER=chromium|firefox. PAGEWISE_LONG=1 adds the long prompts.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { allModels } from '../../scripts/models.mjs';
import { root } from '../../scripts/paths.mjs';
import { BROWSER, usePackage } from './package.mjs';

/** The best token must agree wherever the reference's best logit leads by this. */
const ARGMAX_MARGIN = 0.05;
const LONG_PROMPT_TOKENS = 50;
/** While loading, whatever the model's size. */
const MEMORY_LIMIT_BYTES = 100_000_000;

const golden = (name) => JSON.parse(fs.readFileSync(path.join(root, 'tests/data/golden', `${name}.json`), 'utf8'));

/** Prompts as {name, ids, rows: [{position, known: [[id, logit]]}]}. */
function tinyPrompts(name) {
  return golden('tiny').cases[name].map(({ ids, rows }, index) => ({
    name: `${name} ${index}`,
    ids,
    rows: rows.map(({ pos, logits }) => ({ position: pos, known: logits.map((logit, id) => [id, logit]) })),
  }));
}

function realPrompts(name) {
  const all = golden(`${name}.logits`).prompts.map(({ name: prompt, ids, positions }) => ({
    name: `${name} ${prompt}`,
    ids,
    rows: positions.map(({ pos, exact_top20 }) => ({ position: pos, known: exact_top20 })),
  }));
  return process.env.PAGEWISE_LONG ? all : all.filter(({ ids }) => ids.length < LONG_PROMPT_TOKENS);
}

const realFile = (id) => allModels().find((model) => model.id === id).sources[0];

describe(`the package in ${BROWSER}`, () => {
  const opened = usePackage();

  /** Loads a model and compares every prompt. */
  async function check(file, kv, prompts, tolerance) {
    const options = { kv, contextLength: process.env.PAGEWISE_LONG ? 1280 : 512 };
    const info = await opened.call('load', `/models/${file}`, options);
    assert.equal(info.kv, kv);
    for (const { name, ids, rows } of prompts) {
      const asked = rows.map(({ position, known }) => ({ position, ids: known.map(([id]) => id) }));
      const found = await opened.call('logits', ids, asked);
      for (const [index, { position, known }] of rows.entries()) {
        const worst = Math.max(...known.map(([, logit], at) => Math.abs(found[index].wanted[at] - logit)));
        console.log(`  ${name} position ${position}, KV ${kv}: largest difference ${worst.toExponential(1)}`);
        // Written so that NaN fails.
        assert.ok(worst <= tolerance, `${name} position ${position}: ${worst} away, ${tolerance} allowed`);
        const [first, second] = [...known].sort((a, b) => b[1] - a[1]);
        if (first[1] - second[1] > ARGMAX_MARGIN) assert.equal(found[index].best, first[0], `${name} ${position}`);
      }
    }
    const { wasmMemoryBytes } = await opened.call('metrics');
    console.log(`  ${file}: ${(wasmMemoryBytes / 1e6).toFixed(1)} MB of WebAssembly memory at most`);
    assert.ok(wasmMemoryBytes < MEMORY_LIMIT_BYTES, `${wasmMemoryBytes} bytes of WebAssembly memory`);
    assert.deepEqual(opened.problems, []);
  }

  for (const name of ['tiny-llama', 'tiny-gemma3']) {
    test(`logits of ${name}`, () => check(`${name}-f16.gguf`, 'f32', tinyPrompts(name), 1e-3));
  }
  test('logits of SmolLM2, f32 cache', () =>
    check(realFile('smollm2-135m-instruct'), 'f32', realPrompts('smollm2'), 2e-3));
  // Two prompts show what the cache's format does.
  test('logits of SmolLM2, f16 cache', () =>
    check(realFile('smollm2-135m-instruct'), 'f16', realPrompts('smollm2').slice(0, 2), 3e-2));
  test('logits of Gemma 3, f32 cache', () => check(realFile('gemma-3-270m'), 'f32', realPrompts('gemma3'), 2e-3));
  test('logits of Gemma 3, f16 cache', () =>
    check(realFile('gemma-3-270m'), 'f16', realPrompts('gemma3').slice(0, 2), 3e-2));

  test('the GPU memory is given back', async () => {
    await opened.call('unload');
    assert.deepEqual(opened.problems, []);
  });
});
