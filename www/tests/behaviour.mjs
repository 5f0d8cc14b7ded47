/** What only a real browser shows: scrolling while an answer streams, and the chat with nothing but a keyboard. */
import { ask, MODEL, SIZES, waitDone, waitReady } from './states.mjs';

/** While an answer streams, the end stays in view, unless the visitor scrolled away from it. */
export async function checkScrolling(browser, origin, problems) {
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

/** The chat with nothing but a keyboard: focus goes where it should, and comes back. */
export async function checkKeyboard(browser, origin, problems) {
  const page = await browser.newPage();
  await page.setViewport(SIZES.desktop);
  await page.evaluateOnNewDocument(() => {
    Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: async () => ({}) } });
    window.fakeEngine = { answer: 'Yes.' };
  });
  await page.goto(`${origin}/?model=${MODEL}`);
  await waitReady(page);
  const focused = () =>
    page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent);
  const tabTo = async (name) => {
    for (let at = 0; at < 60; at += 1) {
      if ((await focused()) === name) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`${name} is not reached by Tab`);
  };
  await page.keyboard.press('Tab');
  if ((await focused()) !== 'Skip to content') problems.push(`keyboard: the first stop is ${await focused()}`);
  await tabTo('Settings');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !document.querySelector('dialog'));
  if ((await focused()) !== 'Settings') problems.push(`keyboard: after a dialog the focus is on ${await focused()}`);
  await tabTo('Message');
  await page.keyboard.type('Hello');
  await page.keyboard.press('Enter');
  await waitDone(page);
  if ((await focused()) !== 'Message') problems.push(`keyboard: after sending the focus is on ${await focused()}`);
  await page.evaluate(() => document.querySelector('.rail a[href="#/labs/memory"]').focus());
  await page.keyboard.press('Enter');
  await page.waitForSelector('main.lab');
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  await page.close();
}
