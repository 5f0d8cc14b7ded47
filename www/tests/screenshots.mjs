/**
 * Takes pictures of every state of the page in a real browser, with the fake engine, and checks each with axe, in every
 * language, on a desktop and a phone, light and dark.
 * Usage: node tests/screenshots.mjs [folder]   (ONLY=chat,settings takes some; SIZES, SCHEMES, LANGS too)
 * --quick checks every state on a desktop, light, in English, and on the narrowest phone, dark, in Chinese: for CI.
 * Without a folder every state is checked and the few that the documentation shows go to docs/screenshots.
 * Fails on an accessibility violation, a page error, or anything that the content security policy refused.
 */

import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { build } from 'vite';
import { ensureBrowser } from '../../scripts/browsers.mjs';
import { checkKeyboard, checkScrolling } from './behaviour.mjs';
import { fakeGpu, LAB_PICTURES } from './lab-screens.mjs';
import { serve } from './serve.mjs';
import { ANSWER, SIZES, STATES } from './states.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const quick = process.argv.includes('--quick');
const folder = process.argv.slice(2).find((one) => !one.startsWith('--'));
const outDir = folder ?? join(here, '../../docs/screenshots');
const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const SCHEMES = ['light', 'dark'];
const LANGS = ['en', 'zh'];
/** The pictures in docs/screenshots. */
const KEPT = new Set([
  'empty-desktop-light',
  'chat-desktop-light',
  'chat-desktop-dark',
  'chat-phone-dark',
  'loading-phone-light',
  'settings-desktop-light',
  'out-of-memory-desktop-light',
  ...LAB_PICTURES,
]);

/** Waits until every transition has ended; endless animations do not count. */
function settled(page) {
  return page.evaluate(() => {
    const finite = document.getAnimations().filter((one) => one.effect.getTiming().iterations !== Infinity);
    return Promise.all(finite.map((one) => one.finished.catch(() => {})));
  });
}
/** What is looked at: every state in every size, scheme and language, or a few of them. */
function* variants() {
  const pick = (all, variable) => all.filter((one) => process.env[variable]?.split(',').includes(one) ?? true);
  for (const name of pick(Object.keys(STATES), 'ONLY')) {
    const isHere = (size) => STATES[name].sizes?.includes(size) ?? true;
    if (quick) {
      if (isHere('desktop')) yield { name, size: 'desktop', scheme: 'light', lang: 'en' };
      yield { name, size: 'narrow', scheme: 'dark', lang: 'zh' };
      continue;
    }
    for (const size of pick(['desktop', 'phone'], 'SIZES').filter(isHere)) {
      for (const scheme of pick(SCHEMES, 'SCHEMES')) {
        for (const lang of pick(LANGS, 'LANGS')) yield { name, size, scheme, lang };
      }
    }
  }
}

async function picture(browser, origin, { name, size, scheme, lang }, problems) {
  const state = STATES[name];
  const label = `${name}-${size}-${scheme}${lang === 'en' ? '' : `-${lang}`}`;
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`${label}: ${error.message}`));
  page.on('console', (message) => {
    // A refused request of the policy is reported as a console error.
    if (message.type() === 'error') problems.push(`${label}: ${message.text()}`);
  });
  await page.setViewport(SIZES[size]);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.evaluateOnNewDocument(fakeGpu);
  await page.evaluateOnNewDocument(
    (gpu, fake, language) => {
      localStorage.setItem('pagewise.lang', language);
      if (gpu !== 'ok') {
        const value = gpu === 'missing' ? undefined : { requestAdapter: async () => null };
        Object.defineProperty(navigator, 'gpu', { value });
      }
      window.fakeEngine = fake;
    },
    state.gpu ?? 'ok',
    { answer: ANSWER, ...state.fake },
    lang,
  );
  await page.goto(`${origin}/${state.query ?? ''}${state.hash ?? ''}`);
  await page.waitForSelector('.bar');
  await page.waitForFunction(() => document.querySelector('.model-card, .card, section.status, .lab'));
  await state.act?.(page);
  await settled(page);
  if (state.isTall) await page.setViewport({ ...SIZES[size], height: await columnHeight(page) });
  if (folder || (KEPT.has(label) && !quick)) await page.screenshot({ path: join(outDir, `${label}.png`) });
  problems.push(...(await accessibility(page)).map((text) => `${label}: ${text}`));
  // As it is, and as it would be in a language that is written from right to left.
  for (const dir of ['ltr', 'rtl']) {
    const overflow = await page.evaluate((direction) => {
      document.documentElement.dir = direction;
      return document.documentElement.scrollWidth - window.innerWidth;
    }, dir);
    if (overflow > 0) problems.push(`${label}, ${dir}: ${overflow} px wider than the screen`);
  }
  await context.close();
}

/** What it takes to see all of a view that scrolls. */
function columnHeight(page) {
  return page.evaluate(() => {
    const main = document.querySelector('main');
    return Math.min(5000, Math.ceil(main.getBoundingClientRect().top) + main.scrollHeight);
  });
}

async function accessibility(page) {
  // Evaluated through the debugger, which the page's policy does not govern.
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const { violations } = await axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return violations.map(
      ({ id, help, nodes }) =>
        `${id}: ${help} (${nodes
          .map((node) => node.target.join(' '))
          .slice(0, 3)
          .join(', ')})`,
    );
  });
}

const root = await mkdtemp(join(tmpdir(), 'pagewise-fake-'));
await build({
  configFile: join(here, '../vite.config.ts'),
  mode: 'fake',
  logLevel: 'warn',
  build: { outDir: root, emptyOutDir: true },
});
await mkdir(outDir, { recursive: true });
const server = await serve(root);
const browser = await puppeteer.launch({
  executablePath: await ensureBrowser('chromium'),
  args: [
    '--headless=new',
    '--no-sandbox',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
const problems = [];
let numChecked = 0;
try {
  const origin = `http://127.0.0.1:${server.address().port}`;
  for (const variant of variants()) {
    const { name, size, scheme, lang } = variant;
    const failed = (error) => problems.push(`${name}-${size}-${scheme}-${lang}: ${error.message}`);
    await picture(browser, origin, variant, problems).catch(failed);
    numChecked += 1;
  }
  await checkScrolling(browser, origin, problems);
  await checkKeyboard(browser, origin, problems).catch((error) => problems.push(`keyboard: ${error.message}`));
} finally {
  await browser.close();
  server.close();
  await rm(root, { recursive: true });
}
for (const problem of problems) console.error(problem);
console.log(`${numChecked} screens checked, pictures are in ${outDir}, problems: ${problems.length}`);
process.exitCode = problems.length === 0 ? 0 : 1;
