// One model for several tabs, in a real browser: through a shared worker, with a tab that leads, and without shared workers.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { BROWSER, openTab, usePackage } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';
const OPTIONS = { contextLength: 512, autotune: false };
/** Letters only: nothing that would end an answer. */
const LETTERS = Array.from({ length: 20 }, (_, i) => 70 + i);
const ASK = { prompt: [5, 6, 7, 8], max_tokens: 8, temperature: 0, allowed_token_ids: LETTERS };

describe(`tabs in ${BROWSER}`, () => {
  /** Times that the model was read from its beginning. */
  let numLoads = 0;
  const problems = [];

  const opened = usePackage({
    intercept: ({ url, headers }) => {
      if (url === MODEL && /^bytes=0-/.test(headers.range ?? '')) numLoads += 1;
      return false;
    },
  });

  beforeEach(() => {
    numLoads = 0;
  });

  /** A tab that has loaded the model, shared. */
  async function tab(share, more = {}) {
    const page = await openTab(opened.browser, `${opened.url}test/`);
    page.on('pageerror', (error) => problems.push(error.message));
    await page.evaluate((url, options) => globalThis.test.load(url, options), MODEL, { ...OPTIONS, ...more, share });
    return page;
  }

  const sharing = (page) => page.evaluate(() => globalThis.test.engine().sharing);
  const answer = (page) =>
    page.evaluate(
      (request) =>
        globalThis.test
          .engine()
          .completions.create(request)
          .then(({ choices }) => choices[0].text),
      ASK,
    );
  /** Begins a stream and waits for its first text; how it ends is kept in the page. */
  const begin = (page, maxTokens = 400) =>
    page.evaluate(
      async (request, max_tokens) => {
        const stream = await globalThis.test.engine().completions.create({ ...request, max_tokens, stream: true });
        const iterator = stream[Symbol.asyncIterator]();
        let text = (await iterator.next()).value.choices[0].text;
        const rest = async () => {
          for (;;) {
            const { done, value } = await iterator.next();
            if (done) return { text };
            text += value.choices[0].text;
          }
        };
        globalThis.streamed = rest().catch(({ code, retriable }) => ({ code, retriable }));
      },
      ASK,
      maxTokens,
    );
  const streamed = (page) => page.evaluate(() => globalThis.streamed);
  /** Waits until the tab's state has these values. */
  const until = (page, state) =>
    page.waitForFunction(
      (wanted) => {
        const { sharing } = globalThis.test.engine();
        return Object.entries(wanted).every(([name, value]) => sharing[name] === value);
      },
      {},
      state,
    );

  test('a shared worker has the engine, and outlives the tab that loaded it', async () => {
    const [first, second] = [await tab(true), await tab(true)];
    for (const page of [first, second]) {
      const { owner, role } = await sharing(page);
      assert.deepEqual({ owner, role }, { owner: 'shared-worker', role: 'follower' });
    }
    await until(first, { tabs: 2 });
    const text = await answer(first);
    assert.ok(text.length > 0);
    assert.equal(await answer(second), text);
    await begin(second);
    await first.close();
    const whole = await streamed(second);
    assert.ok(whole.text?.startsWith(text), JSON.stringify(whole));
    await until(second, { tabs: 1 });
    assert.equal(numLoads, 1);
    // The last tab frees it. What is stored by a tab, because a shared worker cannot, the shared worker finds.
    await second.evaluate(() => globalThis.test.unload());
    const third = await tab(true, { store: true });
    assert.equal(await answer(third), text);
    const numBefore = numLoads;
    assert.ok(numBefore > 1);
    await third.evaluate((...args) => globalThis.test.load(...args), MODEL, { ...OPTIONS, share: true });
    assert.equal(await answer(third), text);
    assert.equal(numLoads, numBefore, 'what is stored was loaded from the network');
    assert.equal(await third.evaluate((url) => globalThis.test.models('delete', url), MODEL), true);
    await Promise.all([second.close(), third.close()]);
  });

  for (const [how, more] of [
    ['through a broker', {}],
    ['without shared workers', { withoutSharedWorkers: true }],
  ]) {
    test(`a tab leads (${how}), and hands over when it is closed`, async () => {
      const share = { owner: 'tab', name: how };
      const leader = await tab(share, more);
      const [next, last] = [await tab(share, more), await tab(share, more)];
      assert.deepEqual(await sharing(leader), { owner: 'tab', role: 'leader', isReady: true, tabs: 3 });
      assert.equal((await sharing(next)).role, 'follower');
      const text = await answer(leader);
      assert.deepEqual(await Promise.all([answer(next), answer(last)]), [text, text]);
      assert.equal(numLoads, 1);
      await begin(next);
      // All tabs have the same clock.
      const leads = next.evaluate(async () => {
        while (globalThis.test.engine().sharing.role !== 'leader')
          await new Promise((resolve) => setTimeout(resolve, 5));
        return Date.now();
      });
      const start = Date.now();
      await leader.close();
      const ledMs = (await leads) - start;
      assert.equal(await answer(last), text);
      console.log(
        `  the next tab led ${ledMs} ms after the leader began to close; answered after ${Date.now() - start} ms`,
      );
      assert.deepEqual(await streamed(next), { code: 'leader_lost', retriable: true });
      await until(next, { role: 'leader', isReady: true, tabs: 2 });
      assert.equal(await answer(next), text);
      assert.equal(numLoads, 2);
      // A leader that unloads hands over as well; a tab that comes back takes part again.
      await next.evaluate(() => globalThis.test.unload());
      await until(last, { role: 'leader', isReady: true });
      await next.goto('about:blank');
      await last.evaluate(() => globalThis.test.engine().tokenize('a'));
      await Promise.all([next.close(), last.close()]);
    });
  }

  test('nothing was left uncaught', () => {
    assert.deepEqual([...problems, ...opened.problems], []);
  });
});
