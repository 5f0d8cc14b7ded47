/** The states of the page that are looked at, and how to get there; for screenshots.mjs. */
import { fileURLToPath } from 'node:url';
import { DOCUMENT_STATES } from './document-screens.mjs';
import { LAB_STATES } from './lab-screens.mjs';

export const REGISTRY = {
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

export const ANSWER = `A rainbow forms when **sunlight enters raindrops**, bends, and is reflected inside them:

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

export const SIZES = {
  desktop: { width: 1280, height: 800 },
  narrow: { width: 320, height: 640, isMobile: true, hasTouch: true },
  phone: { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};
export const MODEL = 'smollm2-135m-instruct';
export const QUESTION = 'How does a rainbow form?';

/** Every state: its address, the fake's options, and what is done before the picture. */
export const STATES = {
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
  ...DOCUMENT_STATES,
};

export function waitReady(page) {
  return page.waitForSelector('section.status');
}
export function waitAlert(page) {
  return page.waitForSelector('[role=alert]');
}
export function waitDone(page) {
  return page.waitForSelector('.stats');
}
export async function ask(page, text) {
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
    await page.evaluate(() => document.querySelector('aside.chat-side')?.remove());
  }
}
async function openSettings(page) {
  await page.evaluate(() => document.querySelector('.rail-end button:last-child').click());
  await page.waitForSelector('dialog[open]');
}
