/**
 * Takes pictures of every state of the page in a real browser, with the fake engine, and checks each with axe, in every
 * language, on a desktop and a phone, light and dark.
 * Usage: node tests/screenshots.mjs [folder]   (ONLY=chat,settings takes some; SIZES, SCHEMES, LANGS too)
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
import { fakeGpu, LAB_PICTURES, LAB_STATES } from './lab-screens.mjs';

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
  ...LAB_PICTURES,
]);

const SCHEMES = ['light', 'dark'];
const LANGS = ['en', 'zh'];
const MODEL = 'smollm2-135m-instruct';
const QUESTION = 'How does a rainbow form?';

/** Every state: its address, the fake's options, and what is done before the picture. */
const STATES = {
  empty: {},
  loading: {
    query: `?model=${MODEL}`,
    fake: { holdLoadAt: 0.42, delayMs: 60 },
    act: (page) => page.waitForFunction(() => document.querySelector('progress')?.value > 0.3e8),
  },
  ready: { query: `?model=${MODEL}`, act: waitReady },
  chat: { query: `?model=${MODEL}`, act: chat },
  streaming: {
    query: `?model=${MODEL}`,
    fake: { holdAnswerAt: 40 },
    act: async (page) => {
      await waitReady(page);
      await ask(page, QUESTION);
      await page.waitForFunction(() => /different/.test(document.body.textContent));
    },
  },
  branches: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await branch(page);
      await page.click('.bar .icon-button[aria-haspopup=dialog]:not(.only-narrow)');
      await page.waitForSelector('dialog[open] .tree');
    },
  },
  search: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await branch(page);
      await openMenu(page);
      await page.type('input[type=search]', 'rainbow');
      await page.waitForSelector('mark');
    },
  },
  conversation: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await chat(page);
      await openMenu(page);
      await page.waitForSelector('.item .icon-button');
      await page.$eval('.item .icon-button', (button) => button.click());
      await page.waitForSelector('dialog #conversation-title');
    },
  },
  prompt: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await chat(page);
      await page.click('.prompt-button');
      await page.waitForSelector('dialog[open] textarea');
      await page.type('dialog[open] textarea', 'You answer questions about weather for children.');
      await page.type('#prompt-name', 'support');
      await page.click('.save-prompt button');
      await page.waitForSelector('.prompt-list summary');
      await page.click('.prompt-list summary');
      await page.waitForSelector('.warning');
    },
  },
  budget: {
    query: `?model=${MODEL}&context_length=512`,
    act: async (page) => {
      await chat(page);
      await page.click('.gauge');
      await page.waitForSelector('dialog[open] .legend');
    },
  },
  attached: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await waitReady(page);
      const input = await page.$('.composer input[type=file]');
      await input.uploadFile(
        fileURLToPath(import.meta.url),
        fileURLToPath(new URL('../package.json', import.meta.url)),
      );
      await page.waitForFunction(() => document.querySelectorAll('.chip').length === 2);
    },
  },
  menu: {
    sizes: ['phone'],
    act: async (page) => {
      await page.click('.bar .only-narrow');
      await page.waitForSelector('dialog[open].drawer');
    },
  },
  privacy: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await chat(page);
      await page.evaluate(() => document.querySelector('.rail-end button').click());
      await page.waitForSelector('dialog[open] .stored');
    },
  },
  'settings-end': {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await waitReady(page);
      await openSettings(page);
      await page.$eval('dialog', (dialog) => dialog.scrollTo(0, dialog.scrollHeight));
    },
  },
  settings: {
    query: `?model=${MODEL}`,
    act: async (page) => {
      await waitReady(page);
      await openSettings(page);
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
      await ask(page, QUESTION);
      await waitAlert(page);
    },
  },
  ...LAB_STATES,
  'lab-documents': { hash: '#/labs/documents', act: (page) => page.waitForSelector('.lab') },
};

/** Waits until every transition has ended; endless animations do not count. */
function settled(page) {
  return page.evaluate(() => {
    const finite = document.getAnimations().filter((one) => one.effect.getTiming().iterations !== Infinity);
    return Promise.all(finite.map((one) => one.finished.catch(() => {})));
  });
}
function waitReady(page) {
  return page.waitForSelector('section.status');
}
function waitAlert(page) {
  return page.waitForSelector('[role=alert]');
}
function waitDone(page) {
  return page.waitForSelector('.stats');
}
async function ask(page, text) {
  await page.waitForSelector('.composer textarea');
  await page.type('.composer textarea', text);
  await page.keyboard.press('Enter');
}
async function chat(page) {
  await waitReady(page);
  await ask(page, QUESTION);
  await waitDone(page);
}
/** A conversation with two branches, and an older one beside it. */
async function branch(page) {
  await chat(page);
  await page.$eval('.answer-foot [aria-label]:nth-of-type(2)', (button) => button.click());
  await page.waitForFunction(() => /2\/2/.test(document.querySelector('.branches')?.textContent ?? ''));
  await page.waitForFunction(() => document.querySelector('.composer button[type=submit]'));
}
/** The list of conversations, wherever it is. */
async function openMenu(page) {
  const button = await page.$('.bar .only-narrow');
  if (await button.isVisible()) {
    await button.click();
    await page.waitForSelector('dialog[open].drawer');
    // Only one of the two lists is left, so that selectors find the one that is seen.
    await page.evaluate(() => document.querySelector('aside.side')?.remove());
  }
}
async function openSettings(page) {
  await page.evaluate(() => document.querySelector('.rail-end button:last-child').click());
  await page.waitForSelector('dialog[open]');
}

const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
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
  if (folder || KEPT.has(label)) await page.screenshot({ path: join(outDir, `${label}.png`) });
  problems.push(...(await accessibility(page)).map((text) => `${label}: ${text}`));
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (overflow > 0) problems.push(`${label}: ${overflow} px wider than the screen`);
  await context.close();
}

/** What it takes to see all of a view that scrolls. */
function columnHeight(page) {
  return page.evaluate(() => {
    const main = document.querySelector('main');
    return Math.min(5000, Math.ceil(main.getBoundingClientRect().top) + main.scrollHeight);
  });
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
try {
  const origin = `http://127.0.0.1:${server.address().port}`;
  const pick = (all, variable) => all.filter((one) => process.env[variable]?.split(',').includes(one) ?? true);
  for (const name of pick(Object.keys(STATES), 'ONLY')) {
    for (const size of pick(STATES[name].sizes ?? Object.keys(SIZES), 'SIZES')) {
      for (const scheme of pick(SCHEMES, 'SCHEMES')) {
        for (const lang of pick(LANGS, 'LANGS')) {
          const failed = (error) => problems.push(`${name}-${size}-${scheme}-${lang}: ${error.message}`);
          await picture(browser, origin, { name, size, scheme, lang }, problems).catch(failed);
          numChecked += 1;
        }
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
