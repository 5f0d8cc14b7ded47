/**
 * Scrolls through a conversation of a thousand messages in Chromium, in turn with an empty page of the same height, and says how
 * long frames took and what the main thread did in them. Not a test: times depend on the machine, the ratio hardly does.
 * Usage: node tests/scroll-bench.mjs [rounds], after `npm run build` in the repository's root.
 */
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';
import { ensureBrowser } from '../../scripts/browsers.mjs';
import { PAGE_MOUNTS, serve } from '../../scripts/server.mjs';

const NUM_MESSAGES = 1000;
const NUM_FRAMES = 300;
/** A fast flick: a phone's height in a third of a second. */
const STEP_PX = 40;
const rounds = Number(process.argv[2] ?? 3);

const ANSWER = (at) => `Answer **${at}**: it depends, and here is on what.

- the first thing, with some \`code\` in it
- the second, which is longer than the first so that it takes two lines on every phone that there is

\`\`\`js
const x = ${at};
console.log(x * 2);
\`\`\`

| a | b |
|---|---|
| ${at} | ${at * 2} |`;

const messages = Array.from({ length: NUM_MESSAGES }, (_, at) => ({
  id: `m${at}`,
  parent: at === 0 ? null : `m${at - 1}`,
  role: at % 2 ? 'assistant' : 'user',
  text: at % 2 ? ANSWER(at) : `Question ${at}: what does it depend on?`,
  created: 1000 + at,
  status: 'done',
}));

/** Opens the conversation; answers the height of what scrolls. */
async function openConversation(page, url) {
  const conversation = { title: 'Long', leaf: `m${NUM_MESSAGES - 1}`, updated: Date.now(), messages };
  const file = join(tmpdir(), `pagewise-scroll-${process.pid}.json`);
  await writeFile(file, JSON.stringify({ format: 'pagewise-chats', version: 1, conversations: [conversation] }));
  await page.goto(`${url}?lang=en`);
  const input = await page.waitForSelector('aside [aria-label="Files to import"]');
  await input.uploadFile(file);
  await page.waitForSelector('dialog[open] .button.primary');
  await page.$eval('dialog[open] .button.primary', (button) => button.click());
  await page.waitForSelector('.item a');
  await page.$eval('.item a', (link) => link.click());
  await page.waitForFunction((count) => document.querySelectorAll('.turn').length === count, {}, NUM_MESSAGES);
  return page.$eval('[role=log]', (log) => log.scrollHeight);
}

async function openEmpty(page, height) {
  await page.setContent(
    `<!doctype html><style>body{margin:0}section{height:100vh;overflow-y:auto}div{height:${height}px}</style>` +
      '<section role="log"><div></div></section>',
  );
}

/** Scrolls up from the end; answers the milliseconds of each frame, and of the main thread's work in all of them. */
async function scroll(page) {
  // The thread's own time: a busy machine makes frames late, but not this longer.
  const session = await page.createCDPSession();
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const metrics = async () => {
    const { metrics: all } = await session.send('Performance.getMetrics');
    return 1000 * all.find(({ name }) => name === 'TaskDuration').value;
  };
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await page.bringToFront();
  const before = await metrics();
  const frames = await page.evaluate(
    async (numFrames, step) => {
      const log = document.querySelector('[role=log]');
      log.scrollTop = log.scrollHeight;
      const times = [];
      let last = await new Promise(requestAnimationFrame);
      for (let frame = 0; frame < numFrames; frame += 1) {
        log.scrollTop -= step;
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
      }
      return times;
    },
    NUM_FRAMES,
    STEP_PX,
  );
  const workMs = ((await metrics()) - before) / NUM_FRAMES;
  // Answers that came into view faster than they could be drawn are still their text alone.
  const numLate = await page.$$eval(
    '.outline',
    (all) =>
      all.map((one) => one.getBoundingClientRect()).filter(({ top, bottom }) => bottom > 0 && top < innerHeight).length,
  );
  return { frames, workMs, numLate };
}

function describe(name, { frames, workMs, numLate }) {
  const sorted = frames.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.floor(share * (sorted.length - 1))].toFixed(1);
  console.log(
    `${name}: frames p50 ${at(0.5)}, p95 ${at(0.95)}, max ${at(1)} ms; main thread ${workMs.toFixed(2)} ms a frame, ${numLate} answers late`,
  );
  return { p95: Number(at(0.95)), workMs };
}

const server = await serve({ mounts: PAGE_MOUNTS });
const browser = await puppeteer.launch({
  executablePath: await ensureBrowser('chromium'),
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
try {
  const size = { width: 412, height: 823 };
  const chat = await browser.newPage();
  const empty = await browser.newPage();
  chat.on('pageerror', (error) => console.error(error));
  for (const page of [chat, empty]) {
    await page.setViewport(size);
    page.setDefaultTimeout(120_000);
  }
  await chat.bringToFront();
  const height = await openConversation(chat, server.url);
  await openEmpty(empty, height);
  const ratios = [];
  for (let round = 0; round < rounds; round += 1) {
    const none = describe('empty page  ', await scroll(empty));
    const all = describe('conversation', await scroll(chat));
    ratios.push(all.p95 / none.p95);
    console.log(
      `  p95 ${ratios.at(-1).toFixed(2)} times, main thread ${(all.workMs - none.workMs).toFixed(2)} ms more`,
    );
  }
} finally {
  await browser.close();
  await server.close();
}
