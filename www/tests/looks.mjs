/**
 * A state of the page under one look after another: sizes, schemes and languages are switched in the open page, as a visitor
 * turns a tablet or changes the language, so that a state is opened once for all of them.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fakeGpu } from './lab-screens.mjs';
import { ANSWER, SIZES, STATES } from './states.mjs';

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The name of a look in pictures and complaints. */
export function labelOf(name, { size, scheme, lang }) {
  return `${name}-${size}-${scheme}${lang === 'en' ? '' : `-${lang}`}`;
}

/** Opens a state under a look; `problems` gets the page's own errors. Answers the page, how to change the look, and how to take a picture. */
export async function openState(browser, origin, name, look, problems) {
  const state = STATES[name];
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`${name}: ${error.message}`));
  page.on('console', (message) => {
    // A refused request of the policy is reported as a console error.
    if (message.type() === 'error') problems.push(`${name}: ${message.text()}`);
  });
  const session = await page.createCDPSession();
  const change = (to, height) => applyLook(page, session, to, height);
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
    look.lang,
  );
  await change(look);
  await page.goto(`${origin}/${state.query ?? ''}${state.hash ?? ''}`);
  await page.waitForSelector('.bar');
  await page.waitForFunction(() => document.querySelector('.model-card:not(.to-come), .card, section.status, .lab'));
  await state.act?.(page);
  const shoot = async (file) => {
    const { data } = await session.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: false });
    await writeFile(file, Buffer.from(data, 'base64'));
  };
  return { page, change, shoot, close: () => context.close() };
}

/**
 * Through the debugger itself: Puppeteer's `setViewport` loads the page again where a screen becomes one that is touched, and its
 * pictures have the size that it set.
 */
async function applyLook(page, session, { size, scheme, lang }, height = SIZES[size].height) {
  const { width, isMobile = false, hasTouch = false, deviceScaleFactor = 1 } = SIZES[size];
  await session.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor, mobile: isMobile });
  await session.send('Emulation.setTouchEmulationEnabled', { enabled: hasTouch, maxTouchPoints: hasTouch ? 5 : 1 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  // As if another tab had changed it.
  await page.evaluate(
    (newValue) => dispatchEvent(new StorageEvent('storage', { key: 'pagewise.lang', newValue })),
    lang,
  );
  await settled(page);
}

/** Waits until the page was drawn and every transition has ended; endless animations do not count. */
async function settled(page) {
  await page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const finite = document.getAnimations().filter((one) => one.effect.getTiming().iterations !== Infinity);
    await Promise.all(finite.map((one) => one.finished.catch(() => {})));
  });
}

/** What it takes to see all of a view that scrolls. */
export function columnHeight(page) {
  return page.evaluate(() => {
    const main = document.querySelector('main');
    return Math.min(5000, Math.ceil(main.getBoundingClientRect().top) + main.scrollHeight);
  });
}

/** What axe finds wrong. */
export async function accessibility(page) {
  // Evaluated through the debugger, which the page's policy does not govern.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const { violations } = await axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'],
      resultTypes: ['violations'],
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

/** What is wider than the screen, as the page is and as it would be in a language that is written from right to left. */
export async function overflow(page) {
  const found = [];
  for (const dir of ['rtl', 'ltr']) {
    const pixels = await page.evaluate((direction) => {
      document.documentElement.dir = direction;
      return document.documentElement.scrollWidth - window.innerWidth;
    }, dir);
    if (pixels > 0) found.push(`${dir}: ${pixels} px wider than the screen`);
  }
  return found;
}
