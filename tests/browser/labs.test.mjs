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
    const model = `${server.url}models/tiny-llama-f16.gguf`;
    await page.goto(`${server.url}?lang=en&model=${model}&context_length=512#/labs/cache`);
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

  test('cache: a prompt leaves the GPU and comes back', async () => {
    const [first] = await experiment('Same system prompt twice');
    await click('button', 'Take prompt A out');
    await page.waitForSelector('.block-saved');
    const full = Math.floor(first.prompt / 16);
    assert.equal(await page.$$eval('.block-saved', (all) => all.length), full);
    await click('button', 'Empty the cache');
    await page.waitForFunction(() => !document.querySelector('[data-state="cached"]'));
    await click('button', 'Bring it back');
    await page.waitForFunction(() => document.querySelector('[data-state="cached"]'));
    const back = (await pool()).filter(([state, owners]) => state === 'cached' && owners.startsWith('A'));
    assert.equal(back.length, full);
    assert.deepEqual(opened.problems, []);
  });

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

  test('floor: bytes, bandwidth, and times that add up', async () => {
    await open('floor', '.readouts');
    const plan = await page.evaluate(() => document.querySelector('.readout-value').textContent);
    assert.match(plan, /^1\.\d MB$/);
    await click('button', 'Measure with KV in f16');
    // Context, batches, streaming: three plots, and nothing runs any more.
    await page.waitForFunction(
      () =>
        document.querySelectorAll('.plot').length === 3 &&
        [...document.querySelectorAll('button')].some((one) => one.textContent === 'Measure with KV in f16'),
    );
    const [floor, measured] = [await readout('Floor'), await readout('Measured')].map(milliseconds);
    assert.ok(floor > 0 && measured > 0, `${floor} and ${measured} ms`);
    const rows = await tables();
    // Longer contexts read more, in every format; f32 the most.
    const floors = rows[0].map((row) => row.slice(1, 4).map(milliseconds));
    assert.ok(
      floors.every(([f32, f16, q8]) => f32 >= f16 && f16 >= q8),
      JSON.stringify(floors),
    );
    assert.deepEqual(
      rows[1].map(([name]) => name),
      ['1 answer', '2 answers', '4 answers'],
    );
    // In one piece, the first words come with the last.
    const [streamed, whole] = rows[2].map((row) => row.slice(1).map(milliseconds));
    assert.equal(whole[0], whole[1]);
    assert.ok(streamed[0] <= streamed[1]);
    assert.deepEqual(opened.problems, []);
  });

  test('batching: the simulator shows what each way is for', async () => {
    await open('batching', '.batching-table');
    await page.waitForFunction(() => document.querySelectorAll('.plot').length === 4);
    const [table] = await tables('.batching-table');
    assert.deepEqual(
      table.map(([mode]) => mode),
      ['Static', 'Continuous', 'Continuous, chunked prefill'],
    );
    const quantiles = table.map((row) => row.slice(1, 4).map((text) => text.split(' / ').map(milliseconds)));
    const [fixed, continuous, chunked] = quantiles;
    assert.ok(continuous[0][1] < fixed[0][1], 'first tokens come sooner without waiting for a batch');
    assert.ok(chunked[1][2] < continuous[1][2], 'the longest gaps are those of whole prompts');
    const rates = table.map((row) => Number(row[4].replace(/[^\d.]/g, '')));
    assert.ok(rates[1] > rates[0], rates.join());
  });

  test('batching: the same workload live, in three ways', async () => {
    await page.evaluate(() => document.querySelectorAll('.choices input')[2].click());
    await click('button', 'Run on this device');
    await page.waitForFunction(() => document.querySelectorAll('.batching-table tbody tr').length === 3);
    // Each mode has a row for each request, and each was prefilled and decoded.
    const timelines = (await tables()).slice(1);
    assert.equal(timelines.length, 3);
    for (const rows of timelines) {
      assert.equal(rows.length, 10);
      // A clock of whole milliseconds may measure none; what was not measured is no number.
      for (const [, , prefill, decode] of rows) assert.ok(milliseconds(prefill) >= 0 && milliseconds(decode) >= 0);
    }
    // All come at once and there are three slots: the others wait.
    const waited = timelines.map((rows) => rows.filter(([, waiting]) => milliseconds(waiting) > 0).length);
    assert.ok(
      waited.every((num) => num >= 5),
      waited.join(),
    );
    assert.deepEqual(opened.problems, []);
  });

  test('memory: 131,072 bytes a token for 8B, and who fits', async () => {
    await open('memory', '.memory-bar');
    await page.waitForFunction(() => document.querySelectorAll('.plot').length === 1);
    assert.equal(await readout('KV per token'), '131 kB');
    assert.equal(await readout('Users that fit'), '59');
    const [rows] = await tables();
    const bytes = rows.map(([, , f16]) => Number.parseFloat(f16));
    // A straight line, in steps of a sixteenth of 131,072 tokens.
    assert.equal(rows.length, 17);
    assert.ok(Math.abs(bytes.at(-1) - 17.2) < 0.11 && Math.abs(bytes[8] - 8.6) < 0.11, bytes.join());
  });

  test('doctor: two requests, and a log', async () => {
    await open('doctor', '.found');
    assert.equal(await page.$eval('.found h2', (head) => head.textContent), 'A time or date changes');
    // The model is loaded again as the visitor set it, after the lab that changed that.
    await page.waitForFunction(() => document.querySelectorAll('.side .ids').length === 2);
    const [first, second] = await page.$$eval('.side .ids', (all) => all.map((one) => one.textContent.split(' ')));
    const lead = await page.$$eval('.panel-lead', (all) => all.at(-1).textContent);
    const [, shared, count] = /^(\d+) of (\d+) tokens/.exec(lead);
    const parts = first.findIndex((id, index) => id !== second[index]);
    assert.deepEqual([Number(shared), Number(count)], [parts, second.length]);
    await click('.choices label', 'A log of requests');
    await page.waitForSelector('.causes li');
    const [causes] = await page.$$eval('.causes', (all) => all.map((one) => one.textContent));
    assert.match(causes, /3 requests/);
    assert.deepEqual(opened.problems, []);
  });

  /** The rows of all tables that stand for plots, or of those in an element. */
  function tables(within = '.plot-table') {
    return page.$$eval(within, (all) =>
      all.map((one) =>
        [...one.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent)),
      ),
    );
  }
});

/** A time as the page writes it, in milliseconds. */
function milliseconds(text) {
  const [, value, unit] = /^([\d,.]+) (ms|s|min)/.exec(text) ?? [];
  return Number(value?.replace(/,/g, '')) * { ms: 1, s: 1000, min: 60_000 }[unit];
}
