// The built page under a folder of a plain static host: nothing goes to another origin, everything works without a network
// after the first visit, tabs stay in step, a thousand messages are cheap, and all that is kept can be erased.
//
// The server's policy lets nothing reach another origin and has every attempt reported, from pages, workers and the service
// worker alike. BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { models, pageDist } from '../../scripts/paths.mjs';
import { POLICY, serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';

const BROWSER = process.env.BROWSER ?? 'chromium';
const BASE = '/some/base/';
const MODEL = 'models/tiny-llama-f16.gguf';
const NUM_MESSAGES = 1000;

describe(`the page offline in ${BROWSER}`, () => {
  const requests = [];
  const reports = [];
  let server;
  let opened;
  let page;
  let address;

  const intercept = (request, response) => {
    if (!request.url.startsWith('/reports')) {
      requests.push(request.url);
      return false;
    }
    let body = '';
    request.on('data', (data) => {
      body += data;
    });
    request.on('end', () => {
      reports.push(body);
      response.writeHead(204).end();
    });
    return true;
  };

  const start = (ports) =>
    serve({
      mounts: { [`${BASE}models/`]: models, [BASE]: pageDist },
      ports,
      intercept,
      headers: {
        'content-security-policy': `${POLICY.replace("connect-src 'self' https: blob:", "connect-src 'self' blob:")}; report-uri /reports`,
      },
    });

  before(async () => {
    server = await start([0]);
    opened = await launch({ browser: BROWSER });
    page = opened.page;
    address = `${server.url}${BASE.slice(1)}?model=${MODEL}&temperature=0&max_tokens=8&lang=en`;
    await page.goto(address);
  });

  after(async () => {
    await opened?.close();
    await server?.close();
  });

  const ready = (tab = page) => tab.waitForSelector('section.status');
  const finished = (tab = page) =>
    tab.waitForFunction(() => document.querySelector('[aria-label="Send"]') && document.querySelector('.stats'));

  async function ask(text, tab = page) {
    const box = await tab.waitForSelector('.composer textarea');
    await box.type(text);
    await tab.keyboard.press('Enter');
    await finished(tab);
    return tab.$$eval('.prose', (all) => all.at(-1).textContent);
  }

  /** Presses whatever has this label, wherever it is. */
  const press = (label, tab = page) =>
    tab.waitForSelector(`[aria-label="${label}"]`).then((element) => element.evaluate((one) => one.click()));

  test('a session asks only its own origin, and only for what is below its folder', async () => {
    await ready();
    await ask('Hello');
    for (const lab of ['cache', 'batching', 'floor', 'memory', 'doctor', 'documents']) {
      await page.evaluate((name) => {
        location.hash = `#/labs/${name}`;
      }, lab);
      await page.waitForSelector('main.lab');
    }
    await page.evaluate(() => {
      location.hash = '#/chat';
    });
    await page.waitForSelector('.composer');
    assert.deepEqual(reports, []);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith(BASE) && url !== '/favicon.ico'),
      [],
    );
    assert.ok(requests.some((url) => url.endsWith('.wasm')));
  });

  test('an attempt to reach another origin would have been seen', async () => {
    await page.evaluate(() => fetch('https://example.com/').catch(() => undefined));
    while (reports.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.match(reports.join(), /example\.com/);
    opened.problems.length = 0;
  });

  let answer;
  test('with the server gone the page reloads, loads its model and answers', async () => {
    await page.evaluate(async () => {
      const { active } = await navigator.serviceWorker.ready;
      const { port1, port2 } = new MessageChannel();
      const kept = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
      });
      active.postMessage({ type: 'pagewise-keep-engine' }, [port2]);
      if ((await kept) !== 'kept') throw new Error('the engine is not kept');
    });
    await press('New chat');
    answer = await ask('Hello again');
    const port = Number(new URL(server.url).port);
    await server.close();
    requests.length = 0;

    await page.goto(address);
    await ready();
    assert.equal(await ask('Hello again'), answer);
    assert.deepEqual(requests, []);
    server = await start([port]);
    // A fetch that failed because the server is gone is an error in some consoles.
    opened.problems.length = 0;
  });

  test('conversations outlive a reload, and another tab follows', async () => {
    await page.goto(address);
    await page.waitForSelector('.item');
    const before = await page.$$eval('.item', (all) => all.length);
    const other = await opened.browser.newPage();
    await other.goto(address.replace(/model=[^&]*&/, ''));
    await other.waitForFunction((count) => document.querySelectorAll('.item').length === count, {}, before);
    await page.bringToFront();
    await ready();
    await ask('From the first tab');
    await other.waitForFunction((count) => document.querySelectorAll('.item').length === count + 1, {}, before);
    await other.close();
    assert.deepEqual(opened.problems, []);
  });

  test('an answer whose tab is gone is interrupted in the others, with what had come', async () => {
    const watcher = await opened.browser.newPage();
    watcher.setDefaultTimeout(180_000);
    await watcher.goto(address.replace(/model=[^&]*&/, ''));
    const writer = await opened.browser.newPage();
    writer.setDefaultTimeout(180_000);
    // Nobody tells this tab that its answer has ended: it goes on until the tab is closed.
    await writer.evaluateOnNewDocument(() => {
      const { set } = Object.getOwnPropertyDescriptor(Worker.prototype, 'onmessage');
      const withoutEnd = ({ data }) =>
        data.type === 'events' ? { ...data, events: data.events.filter(({ kind }) => kind !== 'finished') } : data;
      Object.defineProperty(Worker.prototype, 'onmessage', {
        set(listener) {
          set.call(this, (event) => listener({ data: withoutEnd(event) }));
        },
      });
    });
    await writer.goto(address);
    await ready(writer);
    await (await writer.waitForSelector('.composer textarea')).type('Cut off');
    await writer.keyboard.press('Enter');
    // A tab behind another draws no frames in Chromium, and waiting looks at every frame.
    await watcher.bringToFront();
    const item = await watcher.waitForFunction(() =>
      [...document.querySelectorAll('.item a')].find((link) => /Cut off/.test(link.textContent)),
    );
    await item.evaluate((link) => link.click());
    await watcher.waitForFunction(() => document.querySelector('[role=log] .prose')?.textContent.trim());
    assert.equal(await watcher.$('[aria-label="Regenerate"]'), null);
    await writer.close();
    await watcher.waitForSelector('[aria-label="Regenerate"]');
    assert.match(await watcher.$eval('.answer-foot', (foot) => foot.textContent), /Interrupted/);
    assert.notEqual((await watcher.$eval('[role=log] .prose', (prose) => prose.textContent)).trim(), '');
    // It stays so, wherever it is looked at.
    await watcher.reload();
    await watcher.waitForFunction(() => /Interrupted/.test(document.querySelector('.answer-foot')?.textContent ?? ''));
    await watcher.close();
    await page.bringToFront();
    assert.deepEqual(opened.problems, []);
  });

  test('a thousand messages are there, and only those near by are drawn', async () => {
    const messages = Array.from({ length: NUM_MESSAGES }, (_, at) => ({
      id: `m${at}`,
      parent: at === 0 ? null : `m${at - 1}`,
      role: at % 2 ? 'assistant' : 'user',
      text: `**Message ${at}**\n\n- one\n- two\n\n\`\`\`js\nconst x = ${at};\n\`\`\``,
      created: 1000 + at,
      status: 'done',
    }));
    const conversation = { title: 'Long', leaf: `m${NUM_MESSAGES - 1}`, updated: Date.now() + 60_000, messages };
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-')), 'long.json');
    fs.writeFileSync(file, JSON.stringify({ format: 'pagewise-chats', version: 1, conversations: [conversation] }));
    const input = await page.waitForSelector('aside [aria-label="Files to import"]');
    await input.uploadFile(file);
    await page.waitForSelector('dialog[open] .button.primary');
    await page.$eval('dialog[open] .button.primary', (button) => button.click());
    await page.$eval('.item a', (link) => link.click());
    await page.waitForFunction((count) => document.querySelectorAll('.turn').length === count, {}, NUM_MESSAGES);

    const drawn = () => page.$$eval('.turn .prose', (all) => all.length);
    assert.ok((await drawn()) < 60, `${await drawn()} answers are drawn at the end`);
    assert.match(await page.$$eval('.prose', (all) => all.at(-1).textContent), /Message 999/);
    // The words of the others are there for the browser's search.
    assert.match(await page.$$eval('.turn', (all) => all[500].textContent), /Message 500/);
    await page.$eval('[role=log]', (log) => log.scrollTo(0, 0));
    await page.waitForFunction(() => document.querySelectorAll('.turn')[1].querySelector('.prose'));
    assert.ok((await drawn()) < 120, `${await drawn()} answers are drawn after a jump to the beginning`);
    assert.deepEqual(opened.problems, []);
  });

  test('everything that is kept can be erased', async () => {
    await page.waitForSelector('.rail');
    await page.$eval('.rail-end button', (button) => button.click());
    await page.waitForFunction(() => /MB/.test(document.querySelector('.stored')?.textContent ?? ''));
    await page.$eval('dialog[open] .button.danger', (button) => button.click());
    await page.$eval('dialog[open] [role=alert] .button.danger', (button) => button.click());
    await page.waitForSelector('.erased');
    const left = await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const files = [];
      for await (const name of root.keys()) files.push(name);
      return {
        alert: document.querySelector('.erased').textContent,
        databases: (await indexedDB.databases()).map(({ name }) => name),
        files,
        caches: await caches.keys(),
        keys: Object.keys(localStorage),
        workers: (await navigator.serviceWorker.getRegistrations()).length,
      };
    });
    assert.deepEqual(left, {
      alert: 'Everything was erased. Close the page, or begin anew.',
      databases: [],
      files: [],
      caches: [],
      keys: [],
      workers: 0,
    });
    assert.deepEqual(opened.problems, []);
  });
});
