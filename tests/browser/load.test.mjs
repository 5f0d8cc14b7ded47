// Many mixed requests at once through the npm package in a real browser, on a pool that holds a small part of them: every
// promise settles, every complete answer is what the engine says when it has nothing else to do, and nothing is left behind.
//
// That the block manager's own `check()` holds at every step is tested natively (tests/load.rs, tests/engine/load.rs): the
// WebAssembly module is a release build without it. Here, what can be seen from outside is compared between steps.
//
// BROWSER=chromium|firefox. PAGEWISE_LONG=1: all ten rounds have 200 requests, not just the first.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { BROWSER, usePackage } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';
const NUM_ROUNDS = 10;
const NUM_REQUESTS = 200;
const NUM_LATER_REQUESTS = process.env.PAGEWISE_LONG === '1' ? NUM_REQUESTS : 40;
const NUM_QUESTIONS = 32;
/** 32 blocks: two hundred requests want about 800, forty of them 160. */
const OPTIONS = { contextLength: 512, maxRunning: 24, maxQueued: 256 };

/** How a request may end. */
const ENDS = ['finished', 'broken off', 'cancelled', 'deadline_exceeded'];

describe(`a load in ${BROWSER}`, () => {
  const opened = usePackage();

  before(async () => {
    await opened.page.evaluate(
      async (url, options, numQuestions) => {
        const load = await import('/test/load.mjs');
        /** Ids of messages that the worker has not answered. */
        const unanswered = new Set();
        const createWorker = () => {
          const worker = new Worker('/js/dist/worker.js', { type: 'module' });
          const post = worker.postMessage.bind(worker);
          worker.postMessage = (message, transfer) => {
            if (message.id !== undefined) unanswered.add(message.id);
            post(message, transfer);
          };
          worker.addEventListener('message', ({ data }) => unanswered.delete(data.id));
          return worker;
        };
        const info = await globalThis.test.load(url, { ...options, createWorker });
        const engine = globalThis.test.engine();
        const questions = load.questions(numQuestions, info.vocabSize);
        const alone = await load.answersAlone(engine, questions);
        const { Generation } = await import('/js/dist/generation.js');
        globalThis.load = {
          serveRound: (seed, num) => load.serveRound(engine, questions, alone, seed, num),
          numUnanswered: () => unanswered.size,
          generations: Generation.prototype,
        };
      },
      MODEL,
      OPTIONS,
      NUM_QUESTIONS,
    );
  });

  /** Requests in progress that the page still has; only Chromium counts objects. */
  async function numGenerations() {
    if (BROWSER !== 'chromium') return 0;
    const prototype = await opened.page.evaluateHandle(() => globalThis.load.generations);
    const found = await opened.page.queryObjects(prototype);
    return found.evaluate((list) => list.length);
  }

  test('requests end and answer as they do alone, and memory returns to the start, ten times', async () => {
    const memory = [];
    const ends = {};
    let numLooks = 0;
    let metrics;
    for (let seed = 1; seed <= NUM_ROUNDS; seed++) {
      const num = seed === 1 ? NUM_REQUESTS : NUM_LATER_REQUESTS;
      const found = await opened.page.evaluate((...args) => globalThis.load.serveRound(...args), seed, num);
      ({ metrics } = found);
      console.log(`round ${seed}: ${JSON.stringify(found.ends)}, ${metrics.numPreemptions} preemptions so far`);
      assert.deepEqual(found.problems, []);
      for (const [end, count] of Object.entries(found.ends)) ends[end] = (ends[end] ?? 0) + count;
      numLooks += found.numLooks;
      assert.deepEqual([metrics.numRunning, metrics.numWaiting, metrics.kvUsage], [0, 0, 0]);
      assert.deepEqual(
        metrics.kv.map(({ used }) => used),
        metrics.kv.map(() => 0),
      );
      assert.deepEqual([found.stats.numNodes, found.stats.numBlocks, found.numCached], [0, 0, 0]);
      assert.equal(await opened.page.evaluate(() => globalThis.load.numUnanswered()), 0);
      assert.equal(await numGenerations(), 0);
      memory.push(metrics.wasmMemoryBytes);
    }
    assert.deepEqual(Object.keys(ends).sort(), [...ENDS].sort());
    assert.equal(
      Object.values(ends).reduce((a, b) => a + b, 0),
      NUM_REQUESTS + (NUM_ROUNDS - 1) * NUM_LATER_REQUESTS,
    );
    assert.deepEqual(
      memory.slice(1),
      memory.slice(1).map(() => memory[1]),
      `the module's memory grows: ${memory.join()}`,
    );
    assert.ok(numLooks >= NUM_ROUNDS, `only ${numLooks} looks fell between two steps`);
    assert.ok(metrics.numPreemptions > 0, 'the pool is too large to matter');
    assert.equal(metrics.kv[0].peak, metrics.kv[0].numBlocks, 'the pool was never full');
    assert.equal(metrics.numFailed + metrics.numRejected, 0);
    assert.deepEqual(opened.problems, []);
  });
});
