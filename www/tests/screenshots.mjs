/**
 * Takes pictures of every state of the page in a real browser, with the fake engine, and checks each with axe.
 * Usage: node tests/screenshots.mjs [folder]   (ONLY=chat,settings takes some)
 * Without a folder every state is checked and the few that the documentation shows go to docs/screenshots.
 * Fails on an accessibility violation, a page error, or anything that the content security policy refused.
 */

import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { build } from 'vite';
import { ensureBrowser } from '../../scripts/browsers.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const folder = process.argv[2];
const outDir = folder ?? join(here, '../../docs/screenshots');
const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const REGISTRY = {
  models: [
    {
      id: 'smollm2-135m-instruct',
      name: 'SmolLM2 135M Instruct',
      default: true,
      bytes: 98362432,
      quantisation: 'Q4_1',
      licence: 'Apache-2.0',
    },
    { id: 'gemma-3-270m', name: 'Gemma 3 270M', bytes: 253113024, quantisation: 'Q4_K_M', licence: 'Gemma' },
  ],
};

const ANSWER = `A rainbow forms when **sunlight enters raindrops**, bends, and is reflected inside them:

1. Light slows and bends as it enters the drop. Each colour bends by a slightly *different* angle.
2. It reflects off the back of the drop.
3. It bends again on the way out, so the colours spread apart.

The angle for red is about \`42°\`, for violet about \`40°\`:

\`\`\`python
def bow_angle(n: float) -> float:
    """Angle of the primary bow, in degrees, for refractive index n."""
    i = acos(sqrt((n * n - 1) / 3))
    return degrees(4 * asin(sin(i) / n) - 2 * i)
\`\`\`

| Colour | Wavelength | Angle |
|--------|-----------:|------:|
| Red    |     700 nm | 42.4° |
| Violet |     400 nm | 40.5° |

> You always see it with the sun behind you.`;

const SIZES = {
  desktop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};
/** The pictures in docs/screenshots. */
const KEPT = new Set([
  'empty-desktop-light',
  'chat-desktop-light',
  'chat-desktop-dark',
  'chat-phone-dark',
  'loading-phone-light',
  'settings-desktop-light',
  'out-of-memory-desktop-light',
]);

const SCHEMES = ['light', 'dark'];
const MODEL = 'smollm2-135m-instruct';

/** Every state: its address, the fake's options, and what is done before the picture. */
const STATES = {
  empty: {},
  loading: {
    query: `?model=${MODEL}`,
    fake: { holdLoadAt: 0.42, delayMs: 60 },
    act: (page) => page.waitForFunction(() => /left/.test(document.body.textContent)),
  },
  ready: { query: `?model=${MODEL}`, act: waitReady },
  chat: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await waitReady(page);
      await ask(page, 'How does a rainbow form?');
      await waitDone(page);
    },
  },
  streaming: {
    query: `?model=${MODEL}`,
    fake: { holdAnswerAt: 40 },
    act: async (page) => {
      await waitReady(page);
      await ask(page, 'How does a rainbow form?');
      await page.waitForFunction(() => /different/.test(document.body.textContent));
    },
  },
  'settings-end': {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await waitReady(page);
      await page.click('[aria-label="Settings"]');
      await page.waitForSelector('dialog[open]');
      await page.$eval('dialog', (dialog) => dialog.scrollTo(0, dialog.scrollHeight));
    },
  },
  settings: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await waitReady(page);
      await page.click('[aria-label="Settings"]');
      await page.waitForSelector('dialog[open]');
    },
  },
  models: {
    act: async (page) => {
      await page.click('.model-button');
      await page.waitForSelector('dialog[open]');
    },
  },
  'no-webgpu': { gpu: 'missing', act: waitAlert },
  'no-adapter': { gpu: 'null', act: waitAlert },
  'out-of-memory': { query: '?model=https://example.com/big-out_of_memory.gguf', act: waitAlert },
  unsupported: { query: '?model=https://example.com/unsupported_model.gguf', act: waitAlert },
  'device-lost': {
    query: `?model=${MODEL}`,
    fake: { failCode: 'device_lost' },
    act: async (page) => {
      await waitReady(page);
      await ask(page, 'How does a rainbow form?');
      await waitAlert(page);
    },
  },
};

/** Waits until every transition has ended; endless animations do not count. */
function settled(page) {
  return page.evaluate(() => {
    const finite = document.getAnimations().filter((one) => one.effect.getTiming().iterations !== Infinity);
    return Promise.all(finite.map((one) => one.finished.catch(() => {})));
  });
}
function waitReady(page) {
  return page.waitForSelector('[aria-label="Model status"]');
}
function waitAlert(page) {
  return page.waitForSelector('[role=alert]');
}
function waitDone(page) {
  return page.waitForSelector('.stats');
}
async function ask(page, text) {
  await page.type('[aria-label=Message]', text);
  await page.keyboard.press('Enter');
}

const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

function serve(root) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = pathname === '/' ? '/index.html' : normalize(pathname);
    try {
      const body = path === '/models/registry.json' ? JSON.stringify(REGISTRY) : await readFile(join(root, path));
      response.writeHead(200, { 'content-type': TYPES[extname(path)] }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function picture(browser, origin, name, size, scheme, problems) {
  const state = STATES[name];
  const label = `${name}-${size}-${scheme}`;
  const page = await browser.newPage();
  page.on('pageerror', (error) => problems.push(`${label}: ${error.message}`));
  page.on('console', (message) => {
    // A refused request of the policy is reported as a console error.
    if (message.type() === 'error') problems.push(`${label}: ${message.text()}`);
  });
  await page.setViewport(SIZES[size]);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.evaluateOnNewDocument(
    (gpu, fake) => {
      const adapter = gpu === 'null' ? null : {};
      Object.defineProperty(navigator, 'gpu', {
        value: gpu === 'missing' ? undefined : { requestAdapter: async () => adapter },
      });
      window.fakeEngine = fake;
    },
    state.gpu ?? 'ok',
    { answer: ANSWER, ...state.fake },
  );
  await page.goto(`${origin}/${state.query ?? ''}`);
  await page.waitForSelector('.bar');
  await page.waitForFunction(() => document.querySelector('.model-card, .card, [aria-label="Model status"]'));
  await state.act?.(page);
  await settled(page);
  if (folder || KEPT.has(label)) await page.screenshot({ path: join(outDir, `${label}.png`) });
  problems.push(...(await accessibility(page)).map((text) => `${label}: ${text}`));
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (overflow > 0) problems.push(`${label}: ${overflow} px wider than the screen`);
  await page.close();
}

/** While an answer streams, the end stays in view, unless the visitor scrolled away from it. */
async function checkScrolling(browser, origin, problems) {
  const page = await browser.newPage();
  await page.setViewport({ width: 800, height: 600 });
  await page.evaluateOnNewDocument((answer) => {
    Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: async () => ({}) } });
    window.fakeEngine = { answer, delayMs: 2 };
  }, 'Words and words.\n\n'.repeat(150));
  await page.goto(`${origin}/?model=${MODEL}`);
  await waitReady(page);
  await ask(page, 'Go on');
  const distance = () => page.$eval('[role=log]', (log) => log.scrollHeight - log.scrollTop - log.clientHeight);
  await page.waitForFunction(() => document.querySelector('[role=log]').scrollHeight > 1200);
  if ((await distance()) > 60) problems.push(`scrolling: the end is ${await distance()} px away while streaming`);
  await page.$eval('[role=log]', (log) => log.scrollTo(0, 100));
  await waitDone(page);
  const top = await page.$eval('[role=log]', (log) => log.scrollTop);
  if (top !== 100) problems.push(`scrolling: the visitor was moved from 100 to ${top} px`);
  await page.click('[aria-label="Scroll to the end"]');
  if ((await distance()) > 1) problems.push('scrolling: the button does not reach the end');
  await page.close();
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
await build({ mode: 'fake', logLevel: 'warn', build: { outDir: root, emptyOutDir: true } });
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
const only = process.env.ONLY?.split(',');
try {
  const origin = `http://127.0.0.1:${server.address().port}`;
  for (const name of Object.keys(STATES).filter((state) => !only || only.includes(state))) {
    for (const size of Object.keys(SIZES)) {
      for (const scheme of SCHEMES) {
        const failed = (error) => problems.push(`${name}-${size}-${scheme}: ${error.message}`);
        await picture(browser, origin, name, size, scheme, problems).catch(failed);
        numChecked += 1;
      }
    }
  }
  await checkScrolling(browser, origin, problems);
} finally {
  await browser.close();
  server.close();
  await rm(root, { recursive: true });
}
for (const problem of problems) console.error(problem);
console.log(`${numChecked} screens checked, pictures are in ${outDir}, problems: ${problems.length}`);
process.exitCode = problems.length === 0 ? 0 : 1;
