/**
 * Takes the pictures of the README: the chat and each lab, in Chromium with the real engine and SmolLM2, as a visitor would see
 * them. On a software adapter it takes some minutes. Fails on anything that a visitor would find in the console.
 * Usage: node tests/pictures.mjs [folder], after `npm run build` and `npm run fetch-models` in the repository's root.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from '../../scripts/server.mjs';
import { launch } from '../../tests/browser/launch.mjs';
import { columnHeight } from './looks.mjs';

const outDir = process.argv[2] ?? fileURLToPath(new URL('../../docs/screenshots', import.meta.url));
const WIDTH = 1280;
const HEIGHT = 800;
/** What a README shows of a long page. */
const MOST_HEIGHT = 1800;
const QUESTION = 'Write a Python function that adds up a list of numbers, and explain it in two sentences.';

await mkdir(outDir, { recursive: true });
const server = await serve();
const { page, problems, close } = await launch({ browser: 'chromium' });
page.setDefaultTimeout(600_000);

const open = (hash, selector) =>
  page
    .evaluate((to) => {
      location.hash = to;
    }, hash)
    .then(() => page.waitForSelector(selector));
/** Clicks the first element with this text, once it can be. */
const click = (selector, text) =>
  page.waitForFunction(
    (all, wanted) => {
      const found = [...document.querySelectorAll(all)].find((one) => one.textContent.trim() === wanted);
      if (!found || found.disabled) return false;
      found.click();
      return true;
    },
    {},
    selector,
    text,
  );
const isIdle = (text) =>
  page.waitForFunction(
    (wanted) => [...document.querySelectorAll('button')].some((one) => one.textContent === wanted && !one.disabled),
    {},
    text,
  );

async function shoot(name, height = HEIGHT) {
  await page.setViewport({ width: WIDTH, height: Math.min(height, MOST_HEIGHT) });
  // Plots are drawn anew for another size.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  // Where the keyboard is shows only to who uses it.
  await page.evaluate(() => document.activeElement?.blur());
  // What the pointer is over looks chosen.
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(outDir, `${name}.webp`), type: 'webp', quality: 75 });
  await page.setViewport({ width: WIDTH, height: HEIGHT });
  console.log(name);
}

async function chat() {
  await page.goto(`${server.url}?lang=en&temperature=0&max_tokens=200`);
  await (await page.waitForSelector('button.model-card')).click();
  await page.waitForSelector('section.status');
  await page.type('.composer textarea', QUESTION);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.stats');
  await page.waitForSelector('pre code[data-lit]').catch(() => undefined);
  // The gauge counts a moment later; the notice about slow adapters is not every visitor's.
  await page.waitForFunction(() => !/^\s*0 /.test(document.querySelector('.gauge').textContent));
  await page.$$eval('.notice .icon-button', (all) => all.map((one) => one.click()));
  await shoot('chat');
}

async function cache() {
  await open('#/labs/cache?experiment=branches', '.experiment');
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll('.outcomes tbody tr')];
    return rows.length === 3 && rows.every((row) => row.dataset.measured) && document.querySelector('.trie');
  });
  await page.waitForFunction(() => !document.querySelector('[data-state="held"], [data-state="shared"]'));
  await shoot('lab-cache', await columnHeight(page));
}

async function floor() {
  await open('#/labs/floor', '.readouts');
  await click('button', 'Measure with KV in f16');
  await page.waitForFunction(() => document.querySelectorAll('.plot').length === 3);
  await isIdle('Measure with KV in f16');
  await shoot('lab-floor', await columnHeight(page));
}

async function batching() {
  await open('#/labs/batching', '.batching-table');
  await page.waitForFunction(() => document.querySelectorAll('.plot').length === 4);
  await shoot('lab-batching', await columnHeight(page));
}

async function documents() {
  await open('#/labs/documents', '.experiment');
  await (await page.waitForSelector('.documents ~ .actions button')).evaluate((button) => button.click());
  await page.waitForSelector('.experiment:enabled');
  await page.type('input[type=search]', await page.$eval('input[type=search]', (input) => input.placeholder));
  await page.waitForSelector('.hit');
  await page.$eval('.experiment', (button) => button.click());
  await page.waitForSelector('.orders[data-done=true]');
  await page.waitForSelector('.experiment:enabled');
  await shoot('lab-documents', await columnHeight(page));
}

async function rest() {
  await open('#/labs/memory', '.uplot canvas');
  await shoot('lab-memory', await columnHeight(page));
  await open('#/labs/doctor', '.found');
  await page.waitForFunction(() => document.querySelectorAll('.side .tokens').length === 2);
  await shoot('lab-doctor', await columnHeight(page));
}

await page.setViewport({ width: WIDTH, height: HEIGHT });
try {
  // ONLY=lab-documents,chat takes some; those without a model of their own need the chat's.
  const all = {
    chat,
    'lab-cache': cache,
    'lab-floor': floor,
    'lab-batching': batching,
    rest,
    'lab-documents': documents,
  };
  const only = process.env.ONLY?.split(',') ?? Object.keys(all);
  for (const [name, take] of Object.entries(all)) if (only.includes(name)) await take();
} finally {
  await close();
  await server.close();
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
