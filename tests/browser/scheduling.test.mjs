// Many requests through the npm package in a real browser: choices, queues, deadlines, progress, aborts, and what is counted.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { BROWSER, usePackage } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';

describe(`many requests in ${BROWSER}`, () => {
  const opened = usePackage();
  /** Loads a fresh engine: nothing is cached or counted. Tests that do not load go on with the engine of the one before. */
  const load = (options = {}) => opened.call('load', MODEL, { contextLength: 512, ...options });
  /** Runs `code` in the page; it gets the engine, its helpers and `args`. As text, because the page's policy has no eval. */
  const inPage = (code, ...args) =>
    opened.page.evaluate(`(${code})(globalThis.test.engine(), globalThis.helpers, ...${JSON.stringify(args)})`);

  before(async () => {
    await opened.page.evaluate(() => {
      globalThis.helpers = {
        /** A prompt of so many tokens, which begins with `first`. */
        prompt: (length, first = 5) => Array.from({ length }, (_, i) => (i === 0 ? first : 5 + ((i * 7) % 200))),
        /** Its metrics when nothing is on its way any more: the last answer may have been gone on with. */
        settled: async (engine) => {
          let metrics = await engine.metrics();
          for (let before = -1; metrics.numSteps !== before; metrics = await engine.metrics()) {
            before = metrics.numSteps;
            await new Promise((resolve) => setTimeout(resolve, 100));
          }
          return metrics;
        },
        /** An error as data. */
        failure: (promise) =>
          promise.then(
            () => null,
            ({ code, message, retryAfterMs }) => ({ code, message, retryAfterMs }),
          ),
      };
    });
  });

  test('what is counted is what answers say, and every step is told', async () => {
    await load();
    const found = await inPage(async (engine, { prompt, settled }) => {
      const steps = [];
      const end = engine.onStep((step) => steps.push(step));
      const answers = await Promise.all(
        [1, 2, 1, 3].map((n, i) =>
          engine.completions.create({ prompt: prompt(30 + 8 * i, 9 + (i % 2)), n, max_tokens: 5 + i, temperature: 0 }),
        ),
      );
      const [metrics, text] = [await settled(engine), await engine.metricsText()];
      end();
      return {
        steps,
        metrics,
        text,
        answers: answers.map(({ id, usage, choices }) => ({ id, usage, num: choices.length })),
      };
    });
    const { steps, metrics, text, answers } = found;
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    const of = (name) => sum(answers.map(({ usage }) => usage[name]));
    const cached = sum(answers.map(({ usage }) => usage.prompt_tokens_details.cached_tokens));
    const num = sum(answers.map((answer) => answer.num));
    assert.equal(metrics.promptTokens, of('prompt_tokens'));
    assert.equal(metrics.cachedTokens, cached);
    assert.equal(metrics.generatedTokens, of('completion_tokens'));
    assert.equal(metrics.numFinished.stop + metrics.numFinished.length, num);
    assert.equal(metrics.ttftMs.count, num);
    assert.equal(metrics.e2eMs.count, num);
    assert.equal(metrics.interTokenMs.count, of('completion_tokens') - num);
    assert.equal(metrics.stepMs.count, metrics.numSteps);
    assert.equal(metrics.encodeMs.count, metrics.numSteps);
    assert.equal(metrics.stepTokens.sum, metrics.computedTokens);
    assert.ok(metrics.ttftMs.p50 <= metrics.ttftMs.p99 && metrics.ttftMs.p99 <= metrics.ttftMs.max);
    assert.equal(metrics.kvUsage, 0);
    const label = '{model_name="tiny-llama-f16"}';
    assert.ok(text.includes(`\npagewise:generation_tokens_total${label} ${metrics.generatedTokens}\n`), text);
    assert.ok(text.includes(`\npagewise:time_to_first_token_seconds_count${label} ${num}\n`), text);

    assert.equal(steps.length, metrics.numSteps);
    assert.ok(Math.abs(sum(steps.map((step) => step.encodeMs)) - metrics.encodeMs.sum) < 1e-6);
    const parts = steps.flatMap((step) => step.parts);
    // Parts of answers that had ended may be left out.
    const numTold = sum(parts.map((part) => part.end - part.start));
    assert.ok(numTold <= metrics.computedTokens && numTold + metrics.overshotTokens >= metrics.computedTokens);
    for (const { id, usage, num } of answers) {
      const own = parts.filter((part) => part.request === id);
      assert.deepEqual(
        [...new Set(own.map((part) => part.choice))].sort(),
        Array.from({ length: num }, (_, i) => i),
      );
      assert.ok(own.every((part) => part.numPrompt === usage.prompt_tokens));
    }
    assert.ok(parts.every((part) => answers.some(({ id }) => id === part.request)));
    assert.ok(steps.every((step) => step.startMs <= step.endMs && step.endMs > 0 && step.preempted.length === 0));
  });

  test('answers are the same whatever is in flight, and nothing behind a stop shows', async () => {
    const answers = async (maxStepsAhead) => {
      await load({ maxStepsAhead });
      return inPage(async (engine, { prompt, settled }) => {
        // Without the model's own end among them, so that answers have a length.
        const allowed_token_ids = Array.from({ length: 100 }, (_, i) => 70 + i);
        const ask = (params) => engine.completions.create({ allowed_token_ids, max_tokens: 24, ...params });
        const [greedy, drawn] = await Promise.all([
          ask({ prompt: prompt(30, 9), temperature: 0 }),
          ask({ prompt: prompt(40, 10), seed: 5, n: 2 }),
        ]);
        const penalised = await ask({ prompt: prompt(30, 11), seed: 6, frequency_penalty: 1 });
        const few = await ask({ prompt: prompt(30, 12), seed: 7, allowed_token_ids: [70, 71, 72] });
        const whole = drawn.choices[0].text;
        const stop = whole.slice(whole.length / 2, whole.length / 2 + 2);
        const stopped = await ask({ prompt: prompt(40, 10), seed: 5, stop });
        const pieces = await Promise.all([70, 71, 72].map((id) => engine.detokenize([id])));
        const told = [greedy, drawn, penalised, few, stopped].map(({ choices, usage }) => ({ choices, usage }));
        return { told, stop, pieces, metrics: await settled(engine) };
      });
    };
    const [expected, ahead] = [await answers(1), await answers(4)];
    assert.deepEqual(ahead.told, expected.told);
    const { told, stop, pieces, metrics } = ahead;
    const [, drawn, , few, stopped] = told;
    assert.ok(stop !== '' && !stopped.choices[0].text.includes(stop), JSON.stringify([stop, stopped]));
    assert.ok(drawn.choices[0].text.startsWith(stopped.choices[0].text));
    assert.equal(stopped.choices[0].finish_reason, 'stop');
    const strip = (text, piece) => (piece === '' ? text : text.split(piece).join(''));
    assert.equal(pieces.reduce(strip, few.choices[0].text), '', JSON.stringify([pieces, few]));
    assert.deepEqual([expected.metrics.numStepsAhead, expected.metrics.overshotTokens], [0, 0]);
    assert.ok(metrics.numStepsAhead > 20 && metrics.overshotTokens > 0, JSON.stringify(metrics));
    const num = told.reduce((sum, { usage }) => sum + usage.completion_tokens, 0);
    assert.equal(metrics.generatedTokens, num);
    const bad = await inPage((engine, { failure }) =>
      failure(engine.completions.create({ prompt: 'a', allowed_token_ids: [1e6] })),
    );
    assert.deepEqual([bad.code, bad.message.includes('allowed_token_ids')], ['bad_request', true]);
  });

  test('n answers: equal when greedy, different when drawn, and the prompt is computed once', async () => {
    const found = await inPage(async (engine, { prompt }) => {
      const params = { prompt: prompt(40, 20), n: 3, max_tokens: 6 };
      const before = await engine.metrics();
      const greedy = await engine.completions.create({ ...params, temperature: 0 });
      const metrics = await engine.metrics();
      const single = await engine.completions.create({ ...params, n: 1, temperature: 0 });
      const seeded = { ...params, prompt: prompt(40, 21), seed: 7 };
      const [drawn, again] = [await engine.completions.create(seeded), await engine.completions.create(seeded)];
      const texts = ({ choices }) => choices.map((choice) => choice.text);
      return { greedy, before, metrics, texts: [greedy, single, drawn, again].map(texts) };
    });
    const [greedy, [single], drawn, again] = found.texts;
    assert.deepEqual(greedy, [single, single, single]);
    assert.equal(new Set(drawn).size, 3, JSON.stringify(drawn));
    assert.deepEqual(again, drawn);
    const { usage, choices } = found.greedy;
    assert.deepEqual(
      choices.map(({ index }) => index),
      [0, 1, 2],
    );
    assert.equal(usage.prompt_tokens, 40);
    assert.equal(usage.total_tokens, 40 + usage.completion_tokens);
    assert.equal(usage.prompt_tokens_details.cached_tokens, 0);
    const grown = (name) => found.metrics[name] - found.before[name];
    assert.equal(grown('promptTokens'), 40);
    // The last token of each answer is drawn and never computed.
    assert.equal(grown('computedTokens') - grown('overshotTokens'), 40 + usage.completion_tokens - 3);
  });

  test('more answers than a step can draw follow, and a burst on an idle engine is not refused', async () => {
    await load({ maxQueued: 1 });
    const found = await inPage(async (engine, { prompt, failure }) => {
      const params = { prompt: prompt(40, 23), max_tokens: 3, temperature: 0 };
      const { choices, usage } = await engine.completions.create({ ...params, n: 16 });
      const { promptTokens } = await engine.metrics();
      const burst = [24, 25, 26].map((first) =>
        engine.completions.create({ prompt: prompt(20, first), max_tokens: 2 }),
      );
      const failures = await Promise.all(burst.map(failure));
      return { texts: choices.map(({ text }) => text), usage, promptTokens, failures };
    });
    assert.equal(found.texts.length, 16);
    assert.equal(new Set(found.texts).size, 1);
    assert.deepEqual([found.usage.prompt_tokens, found.promptTokens], [40, 40]);
    assert.deepEqual(found.failures, [null, null, null]);
  });

  test('the timeline shows the phases of a request', async () => {
    const found = await inPage(async (engine, { prompt }) => {
      const seen = [];
      const observer = new PerformanceObserver((list) => seen.push(...list.getEntries()));
      observer.observe({ type: 'measure' });
      const { id, usage } = await engine.completions.create({ prompt: prompt(30, 22), max_tokens: 4 });
      await new Promise((resolve) => setTimeout(resolve, 100));
      seen.push(...observer.takeRecords());
      observer.disconnect();
      const entries = seen.map(({ name, startTime, duration, detail }) => ({ name, startTime, duration, detail }));
      return { id, usage, entries, left: performance.getEntriesByType('measure').length };
    });
    const { id, usage, entries, left } = found;
    assert.deepEqual(
      entries.map(({ name, detail }) => [name, detail.request, detail.tokens]),
      [
        ['pagewise:queue', id, 30],
        ['pagewise:prefill', id, 30],
        ['pagewise:decode', id, usage.completion_tokens],
      ],
    );
    assert.ok(entries.every((entry) => entry.detail.devtools.track === 'Requests' && entry.duration >= 0));
    assert.equal(left, 0);
    assert.deepEqual(opened.problems, []);
  });

  test('a full queue refuses and says when to come again', async () => {
    await load({ maxRunning: 1, maxQueued: 4, stepTargetMs: 0.01 });
    const found = await inPage(async (engine, { prompt, failure }) => {
      // A first answer tells how long answers take.
      await engine.completions.create({ prompt: prompt(20), max_tokens: 4 });
      const all = Array.from({ length: 10 }, (_, i) =>
        engine.completions.create({ prompt: prompt(20, 10 + i), max_tokens: 16 }),
      );
      const failures = await Promise.all(all.map(failure));
      return { failures, metrics: await engine.metrics() };
    });
    const refused = found.failures.filter((failure) => failure !== null);
    assert.ok(refused.length >= 5 && refused.length < 10, JSON.stringify(found.failures));
    for (const { code, retryAfterMs } of refused) {
      assert.equal(code, 'queue_full');
      assert.ok(retryAfterMs > 0, String(retryAfterMs));
    }
    assert.equal(found.metrics.numRejected, refused.length);
    const { stop, length } = found.metrics.numFinished;
    assert.equal(stop + length, 1 + 10 - refused.length);
  });

  test('deadlines and timeouts fail by name and give everything back', async () => {
    const found = await inPage(async (engine, { prompt, failure }) => {
      const long = engine.completions.create({
        prompt: prompt(20),
        max_tokens: 200,

        temperature: 1,
      });
      const create = (more) => failure(engine.completions.create({ prompt: prompt(30, 40), max_tokens: 4, ...more }));
      const failures = await Promise.all([
        create({ deadline_ms: 0.01 }),
        create({ timeout_ms: 0.01 }),
        create({ timeout_ms: { queue: 0.01 } }),
        create({ timeout_ms: { queue: 600_000, total: 600_000 }, deadline_ms: 600_000 }),
      ]);
      await long;
      return { failures, metrics: await engine.metrics() };
    });
    const [deadline, total, queue, none] = found.failures;
    for (const failure of [deadline, total, queue]) assert.equal(failure.code, 'deadline_exceeded');
    assert.match(deadline.message, /deadline_ms/);
    assert.match(total.message, /timeout_ms\.total/);
    assert.match(queue.message, /timeout_ms\.queue/);
    assert.equal(none, null);
    assert.equal(found.metrics.numExpired, 3);
    assert.equal(found.metrics.kv[0].used, 0);
  });

  test('a stream tells where it waits and how far its prompt is', async () => {
    const progress = await inPage(async (engine, { prompt }) => {
      const first = engine.completions.create({ prompt: prompt(20, 42), max_tokens: 30 });
      const stream = await engine.completions.create({
        ...{ prompt: prompt(300, 43), max_tokens: 2, priority: 'batch' },
        ...{ stream: true, stream_options: { include_progress: true } },
      });
      const seen = [];
      for await (const chunk of stream) {
        if (chunk.progress) seen.push(chunk.progress);
        if (chunk.choices.length > 0) seen.push('text');
      }
      await first;
      return seen;
    });
    const states = progress.map((item) => item.state ?? item);
    const [waiting, prefill] = ['waiting', 'prefill'].map((state) => progress.filter((item) => item.state === state));
    assert.ok(waiting.length > 0 && waiting.every((item) => item.position === 0), JSON.stringify(progress));
    assert.ok(prefill.length > 1 && prefill.every((item) => item.total === 300), JSON.stringify(prefill));
    const computed = prefill.map((item) => item.computed);
    assert.deepEqual(
      computed,
      [...new Set(computed)].sort((a, b) => a - b),
    );
    assert.equal(computed.at(-1), 300);
    assert.ok(states.lastIndexOf('waiting') < states.indexOf('prefill'), states.join());
    assert.ok(states.lastIndexOf('prefill') < states.indexOf('text'), states.join());
  });

  test('an abort in prefill or in decode takes effect before the next step; what was computed stays cached', async () => {
    await load({ stepTargetMs: 0.01 });
    const abortIn = (phase, first) =>
      inPage(
        async (engine, { prompt }, phase, first) => {
          const controller = new AbortController();
          const params = { prompt: prompt(300, first), max_tokens: 200, n: 2 };
          const stream = await engine.completions.create(
            { ...params, stream: true, stream_options: { include_progress: true } },
            { signal: controller.signal },
          );
          let metrics;
          let code;
          try {
            for await (const { progress, choices } of stream) {
              const isThere = phase === 'prefill' ? progress?.computed > 16 : choices.length > 0;
              if (metrics || !isThere) continue;
              controller.abort();
              metrics = await engine.metrics();
            }
          } catch (error) {
            code = error.code;
          }
          const after = await engine.completions.create({ ...params, n: 1, max_tokens: 1 });
          return { code, metrics, cached: after.usage.prompt_tokens_details.cached_tokens };
        },
        phase,
        first,
      );
    const inPrefill = await abortIn('prefill', 9);
    const inDecode = await abortIn('decode', 10);
    for (const [name, { code, metrics, cached }] of Object.entries({ inPrefill, inDecode })) {
      assert.equal(code, 'cancelled', name);
      assert.deepEqual([metrics.numRunning, metrics.numWaiting, metrics.kv[0].used], [0, 0, 0], name);
      assert.ok(cached >= 16, `${name}: ${cached} cached`);
    }
    assert.ok(inPrefill.cached < 299, `${inPrefill.cached} of 300 were computed: that was no prefill`);
    assert.equal(inPrefill.metrics.numCancelled, 2);
    assert.equal(inDecode.metrics.numCancelled, 4);
  });
});
