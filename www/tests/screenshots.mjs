/**
 * Takes pictures of every state of the page in a real browser, with the fake engine, and checks each with axe, in every
 * language, on a desktop and a phone, light and dark.
 * Usage: node tests/screenshots.mjs [folder]   (ONLY=chat,settings takes some; SIZES, SCHEMES, LANGS too)
 * --quick checks every state light and dark, on a desktop and the narrowest phone, each language on both and in both: for CI.
 * Pictures are taken where a folder for them is given; those of the README are taken by pictures.mjs.
 * Fails on an accessibility violation, a page error, or anything that the content security policy refused.
 */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { build } from 'vite';
import { ensureBrowser } from '../../scripts/browsers.mjs';
import { checkKeyboard, checkScrolling } from './behaviour.mjs';
import { accessibility, columnHeight, labelOf, openState, overflow } from './looks.mjs';
import { serve } from './serve.mjs';
import { STATES } from './states.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const quick = process.argv.includes('--quick');
const folder = process.argv.slice(2).find((one) => !one.startsWith('--'));

const SCHEMES = ['light', 'dark'];
const LANGS = ['en', 'zh'];
/** What CI looks at: every pair of size, scheme and language is among them. */
const QUICK_LOOKS = [
  { size: 'desktop', scheme: 'light', lang: 'en' },
  { size: 'desktop', scheme: 'dark', lang: 'zh' },
  { size: 'narrow', scheme: 'dark', lang: 'en' },
  { size: 'narrow', scheme: 'light', lang: 'zh' },
];

const pick = (all, variable) => all.filter((one) => process.env[variable]?.split(',').includes(one) ?? true);

/** The looks of a state that one opening of it is good for. */
function visits({ sizes }) {
  if (quick) {
    // A state that only phones have is got at on a phone.
    const looks = sizes ? QUICK_LOOKS.filter(({ size }) => size === 'narrow') : QUICK_LOOKS;
    return [looks];
  }
  return pick(['desktop', 'phone'], 'SIZES')
    .filter((size) => sizes?.includes(size) ?? true)
    .map((size) =>
      pick(SCHEMES, 'SCHEMES').flatMap((scheme) => pick(LANGS, 'LANGS').map((lang) => ({ size, scheme, lang }))),
    );
}

/** Opens a state and looks at it; answers how often. */
async function visit(browser, origin, name, looks, problems) {
  const { page, change, shoot, close } = await openState(browser, origin, name, looks[0], problems);
  try {
    for (const look of looks) {
      const label = labelOf(name, look);
      await change(look);
      if (STATES[name].isTall) await change(look, await columnHeight(page));
      if (folder) await shoot(join(folder, `${label}.png`));
      const found = [...(await accessibility(page)), ...(await overflow(page))];
      problems.push(...found.map((text) => `${label}: ${text}`));
    }
  } finally {
    await close();
  }
  return looks.length;
}

const root = await mkdtemp(join(tmpdir(), 'pagewise-fake-'));
await build({
  configFile: join(here, '../vite.config.ts'),
  mode: 'fake',
  logLevel: 'warn',
  build: { outDir: root, emptyOutDir: true },
});
if (folder) await mkdir(folder, { recursive: true });
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
  for (const name of pick(Object.keys(STATES), 'ONLY')) {
    for (const looks of visits(STATES[name])) {
      const failed = (error) => problems.push(`${name}: ${error.message}`);
      numChecked += (await visit(browser, origin, name, looks, problems).catch(failed)) || 0;
    }
  }
  await checkScrolling(browser, origin, problems);
  await checkKeyboard(browser, origin, problems).catch((error) => problems.push(`keyboard: ${error.message}`));
} finally {
  await browser.close();
  server.close();
  await rm(root, { recursive: true });
}
for (const problem of problems) console.error(problem);
console.log(`${numChecked} screens checked, problems: ${problems.length}`);
process.exitCode = problems.length === 0 ? 0 : 1;
