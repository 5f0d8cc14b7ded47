// What is left of a model when it is unloaded: no GPU memory, and WebAssembly memory that the next load uses again.
//
// BROWSER=chromium|firefox. PAGEWISE_LONG=1: twenty loads in Chromium as well, where SwiftShader compiles kernels for seconds each time.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BROWSER, usePackage } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';
const NUM_LOADS = BROWSER === 'firefox' || process.env.PAGEWISE_LONG === '1' ? 20 : 4;

describe(`unload in ${BROWSER}`, () => {
  const opened = usePackage();

  test(`frees all GPU memory, ${NUM_LOADS} times in one worker`, async () => {
    const rounds = await opened.page.evaluate(
      async (url, numLoads) => {
        const { Engine } = await import('/js/dist/index.js');
        // One worker for all of them: it outlives the engines, so that nothing is freed only because a worker has ended.
        const worker = new Worker('/test/counting-worker.mjs', { type: 'module' });
        worker.terminate = () => undefined;
        const channel = new BroadcastChannel('gpu-bytes');
        const rounds = [];
        for (let i = 0; i < numLoads; i++) {
          let counted;
          channel.onmessage = ({ data }) => {
            counted = data;
          };
          const engine = await Engine.load(url, { createWorker: () => worker, contextLength: 64, autotune: false });
          const { choices } = await engine.completions.create({ prompt: [5, 6, 7], max_tokens: 2, temperature: 0 });
          const { wasmMemoryBytes } = await engine.metrics();
          const loaded = counted;
          await engine.unload();
          // A message of another channel may come later than the answer.
          await new Promise((resolve) => setTimeout(resolve, 20));
          console.log(`round ${i}: ${Math.round(performance.now())} ms, ${JSON.stringify(counted)}`);
          rounds.push({ loaded, unloaded: counted, wasmMemoryBytes, text: choices[0].text });
        }
        return rounds;
      },
      MODEL,
      NUM_LOADS,
    );
    const memory = rounds.map(({ wasmMemoryBytes }) => wasmMemoryBytes);
    console.log(`  loaded: ${rounds[0].loaded.bytes} bytes of GPU memory; WebAssembly memory: ${memory.join(' ')}`);
    for (const { loaded, unloaded, text } of rounds) {
      assert.ok(loaded.bytes > 100_000, `${loaded.bytes} bytes while it is loaded`);
      // How many results are on their way back decides how many buffers they take.
      assert.ok(Math.abs(loaded.bytes - rounds[0].loaded.bytes) < 0.01 * loaded.bytes, JSON.stringify(loaded));
      assert.deepEqual(unloaded, { numBuffers: 0, bytes: 0 });
      assert.equal(text, rounds[0].text);
    }
    // A later load may need a few pages more once, by how its steps fall together (in 90 loads: one step of 320 KiB, then none);
    // what one leaves behind would add up.
    assert.ok(memory.at(-1) - memory[2] <= 2 ** 19, 'WebAssembly memory grows');
    assert.deepEqual(opened.problems, []);
  });
});
