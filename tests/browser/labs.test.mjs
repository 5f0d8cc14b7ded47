// The labs on a real engine: each experiment's numbers are those that its tokens lead to.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';

const BROWSER = process.env.BROWSER ?? 'chromium';

/** What of the last prompts is reused, at least and at most, as a share of the prompt; B first. */
const REUSED = {
  'Same system prompt twice': [[0.8, 1]],
  'Timestamp first': [[0, 0.2]],
  'Timestamp moved last': [[0.8, 1]],
  'Reordered document': [[0.2, 0.5]],
  'One word changed in the middle': [[0.35, 0.65]],
  'Edited turn': [[0.45, 0.8]],
  'Three branches': [
    [0.75, 1],
    [0.75, 1],
  ],
  // Rules, knowledge and history are 15,000 of 15,500 tokens; rules and knowledge are 10,000.
  'Customer service': [
    [0.85, 1],
    [0.5, 0.85],
  ],
};

describe(`the labs in ${BROWSER}`, () => {
  let server;
  let opened;
  let page;

  before(async () => {
    server = await serve();
    opened = await launch({ browser: BROWSER });
    page = opened.page;
    await page.evaluateOnNewDocument(() => localStorage.setItem('pagewise.lang', 'en'));
    await page.goto(`${server.url}?model=${server.url}models/tiny-llama-f16.gguf&context_length=1024#/labs/cache`);
    await page.waitForSelector('.experiment');
  });

  after(async () => {
    await opened?.close();
    await server?.close();
  });

  /** Clicks the first element that has exactly this text. */
  const click = (selector, text) =>
    page.waitForFunction(
      (s, wanted) => {
        const found = [...document.querySelectorAll(s)].find((one) => one.textContent.trim() === wanted);
        if (!found || found.disabled) return false;
        found.click();
        return true;
      },
      {},
      selector,
      text,
    );
  const open = (view, selector) =>
    page.evaluate((hash) => (location.hash = hash), `#/labs/${view}`).then(() => page.waitForSelector(selector));
  /** The numbers of a readout. */
  const readout = (label) =>
    page.evaluate((wanted) => {
      const found = [...document.querySelectorAll('.readout')].find(
        (one) => one.querySelector('dt').textContent === wanted,
      );
      return found?.querySelector('.readout-value').textContent ?? null;
    }, label);

  /** Runs an experiment of the cache lab; answers its rows once all are measured and nothing runs. */
  async function experiment(name) {
    await click('.experiment', name);
    const isDone = (wanted) => {
      const rows = [...document.querySelectorAll('.outcomes tbody tr')];
      const title = document.querySelector('.run h2')?.textContent;
      const isBusy = document.querySelector('.experiment:disabled') !== null;
      return title === wanted && !isBusy && rows.length > 1 && rows.every((row) => row.dataset.measured !== undefined);
    };
    await page.waitForFunction(isDone, {}, name);
    return page.evaluate(() =>
      [...document.querySelectorAll('.outcomes tbody tr')].map(({ dataset, textContent }) => ({
        expected: Number(dataset.expected),
        measured: Number(dataset.measured),
        prompt: Number(dataset.prompt),
        text: textContent,
      })),
    );
  }

  /** Waits until the pool shows what the experiment left; answers the states and letters of its blocks. */
  async function pool() {
    await page.waitForFunction(() => !document.querySelector('[data-state="held"], [data-state="shared"]'));
    return page.evaluate(() =>
      [...document.querySelectorAll('.block')].map((block) => [block.dataset.state, block.textContent]),
    );
  }

  for (const [name, limits] of Object.entries(REUSED)) {
    test(`cache: ${name}`, async () => {
      const [first, ...others] = await experiment(name);
      assert.equal(first.measured, 0, 'the first is cold');
      assert.equal(others.length, limits.length);
      for (const [index, { expected, measured, prompt, text }] of others.entries()) {
        assert.equal(measured, expected, text);
        assert.match(text, /as expected/);
        const [least, most] = limits[index];
        const share = measured / prompt;
        assert.ok(share >= least && share <= most, `${name}: ${measured} of ${prompt}`);
      }
      // What both begin with is in the pool once: full blocks have both letters.
      const blocks = await pool();
      const shared = blocks.filter(([, owners]) => owners.startsWith('AB')).length;
      assert.equal(shared, Math.floor(others[0].expected / 16), JSON.stringify(blocks.filter(([, o]) => o !== '')));
      assert.deepEqual(opened.problems, []);
    });
  }

  test('cache: more than the pool holds', async () => {
    const rows = await experiment('More than the pool holds');
    const last = rows.at(-1);
    assert.ok(last.measured < last.expected, last.text);
    assert.match(last.text, /given up/);
    assert.ok(Number(await readout('Given up for their place')) > 0);
    // Pinned, the first prompt stays.
    await page.evaluate(() => document.querySelectorAll('[role="switch"]')[1].click());
    await click('button', 'Empty the cache');
    const pinned = await experiment('More than the pool holds');
    assert.ok(pinned.at(-1).measured > last.measured, pinned.at(-1).text);
    await page.evaluate(() => document.querySelectorAll('[role="switch"]')[1].click());
  });

  test('cache: switched off, nothing is reused', async () => {
    await page.evaluate(() => document.querySelectorAll('[role="switch"]')[0].click());
    const rows = await experiment('Same system prompt twice');
    assert.deepEqual(
      rows.map(({ measured }) => measured),
      [0, 0],
    );
    assert.match(rows[1].text, /the cache is off/);
    await page.evaluate(() => document.querySelectorAll('[role="switch"]')[0].click());
    assert.deepEqual(opened.problems, []);
  });
});
