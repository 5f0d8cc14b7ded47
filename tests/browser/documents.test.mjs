// Documents on a real engine: files of all kinds are read by the page's own worker, found again, and put where the cache is not
// hurt; answers cite them.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../scripts/server.mjs';
import { column, makePdf } from '../../www/tests/documents/make-pdf.mjs';
import { launch } from './launch.mjs';

const BROWSER = process.env.BROWSER ?? 'chromium';
const MODEL = 'models/tiny-llama-f16.gguf';

const MANUAL = makePdf(
  [
    [
      { text: 'Stove manual', size: 24, y: 780 },
      { text: 'Lighting', size: 16, y: 720 },
      ...column(['Open the valve by a quarter and hold a match to the', 'burner until it is blue.'], { top: 690 }),
    ],
    [{ text: 'Cleaning', size: 16, y: 760 }, ...column(['Scrub the grate with sand after every trip.'], { top: 730 })],
  ],
  { title: 'The stove' },
);
const CHINESE = makePdf([
  [{ text: '灯塔手册', size: 24, y: 760 }, ...column(['雾天每隔三十秒鸣笛一次。'], { top: 700 })],
]);
const SHOP = `# Shop\n\n## Tents\n\nA tent can be returned within 14 days.\n\n## Norway\n\nA parcel to Norway costs 24 euros.\n`;

const GOOD = { 'stove.pdf': MANUAL, 'lighthouse.pdf': CHINESE, 'shop.md': SHOP };
const BAD = {
  'locked.pdf': [makePdf([[]], { encrypted: true }), 'encrypted'],
  'scan.pdf': [makePdf([[], []]), 'scanned'],
  'torn.pdf': [`%PDF-1.4\n${'x'.repeat(4000)}`, 'broken'],
  'renamed.pdf': ['no PDF at all', 'broken'],
  'empty.txt': ['', 'empty'],
  'program.txt': [new Uint8Array([77, 90, 0, 1, 2, 3]), 'not_text'],
};

describe(`documents in ${BROWSER}`, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-'));
  let server;
  let opened;
  let page;

  before(async () => {
    server = await serve();
    opened = await launch({ browser: BROWSER });
    page = opened.page;
    await page.evaluateOnNewDocument(() => {
      globalThis.violations = [];
      addEventListener('securitypolicyviolation', (event) =>
        globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
      );
    });
    const query = `lang=en&model=${server.url}${MODEL}&context_length=512&temperature=0&max_tokens=4`;
    await page.goto(`${server.url}?${query}#/labs/documents`);
    await page.waitForSelector('.experiment');
  });

  after(async () => {
    await opened?.close();
    await server?.close();
    fs.rmSync(folder, { recursive: true });
  });

  const fileOf = (name, contents) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, contents);
    return file;
  };

  /** Adds files and waits until none is being read any more. */
  async function add(files) {
    const input = await page.waitForSelector('.add-documents input[type=file]');
    await input.uploadFile(...files);
    await page.waitForFunction(() => document.querySelector('.readings li'), { timeout: 2000 }).catch(() => undefined);
    await page.waitForFunction(() => !document.querySelector('.readings li'));
  }

  async function nothingWrong() {
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    assert.deepEqual(opened.problems, []);
  }

  /** Searches; answers what was found, the best first. */
  async function search(question, isFirst) {
    await page.$eval(
      'input[type=search]',
      (input, text) => {
        input.value = text;
        input.dispatchEvent(new Event('input', { bubbles: true }));
      },
      question,
    );
    await page.waitForFunction((wanted) => document.querySelector('.hit')?.textContent.includes(wanted), {}, isFirst);
    return page.$$eval('.hit', (all) => all.map(({ dataset, textContent }) => [dataset.passage, textContent]));
  }

  test('PDF and Markdown files become passages that know their page and headings', async () => {
    await add(Object.entries(GOOD).map(([name, contents]) => fileOf(name, contents)));
    const rows = await page.$$eval('.document-list summary', (all) => all.map((one) => one.textContent));
    assert.equal(rows.length, 3, rows.join('\n'));
    assert.match(rows.join('\n'), /The stove.*stove\.pdf.*2 pages · 2 passages/);
    assert.match(rows.join('\n'), /灯塔手册.*1 page · 1 passage/);
    const [best, ...others] = await search('How is the burner lit with a match?', 'quarter');
    assert.match(best[0], /\/1$/);
    assert.match(best[1], /Lighting.*stove\.pdf, page 1, Stove manual › Lighting/);
    assert.match(best[1], /match to the burner until/, 'lines of a paragraph are one');
    assert.ok(others.length < 3);
    assert.match((await search('grate', 'sand'))[0][1], /stove\.pdf, page 2, Stove manual › Cleaning/);
    // A font that the file names only, in codes of its own: what they mean comes with the page.
    assert.match((await search('雾天多久鸣笛？', '三十秒'))[0][1], /灯塔手册.*lighthouse\.pdf, page 1/);
    await nothingWrong();
  });

  test('what cannot be read says why, and the rest stays', async () => {
    await add(Object.entries(BAD).map(([name, [contents]]) => fileOf(name, contents)));
    const found = await page.$$eval('.document-problem', (all) =>
      all.map(({ dataset, textContent }) => [/^\S+/.exec(textContent)[0], dataset.code]),
    );
    assert.deepEqual(
      found,
      Object.entries(BAD).map(([name, [, code]]) => [name, code]),
    );
    assert.equal(await page.$$eval('.document-list > li', (all) => all.length), 3);
    // The same document under another name.
    await add([fileOf('shop copy.md', `${SHOP}\n`)]);
    assert.equal(await page.$$eval('.document-problem', (all) => all.at(-1).dataset.code), 'known');
    await page.$$eval('.document-problem button', (all) => {
      for (const button of all) button.click();
    });
    await nothingWrong();
  });

  /** Runs an experiment; answers the rows of each order. */
  async function experiment(name) {
    await page.waitForFunction(
      (wanted) => {
        const found = [...document.querySelectorAll('.experiment')].find((one) => one.textContent === wanted);
        if (!found || found.disabled) return false;
        found.click();
        return true;
      },
      {},
      name,
    );
    await page.waitForFunction(
      (wanted) =>
        document.querySelector('.run h2')?.textContent === wanted &&
        document.querySelector('.orders')?.dataset.done === 'true' &&
        !document.querySelector('.experiment:disabled'),
      {},
      name,
    );
    const groups = await page.$$eval('.orders tbody', (all) =>
      all.map(({ dataset, rows }) => [
        dataset.order,
        [...rows]
          .filter((row) => row.dataset.at)
          .map(({ dataset: row }) => ({
            at: Number(row.at),
            expected: Number(row.expected),
            measured: Number(row.measured),
            prompt: Number(row.prompt),
            passages: row.passages.split(' '),
          })),
      ]),
    );
    return Object.fromEntries(groups);
  }

  test('passages behind the rules leave the cache whole, in front of them they empty it', async () => {
    const questions = ['A tent, when?', 'Norway?', 'The grate?'].join('\n');
    await page.$eval(
      '.panel textarea',
      (area, text) => {
        area.value = text;
        area.dispatchEvent(new Event('input', { bubbles: true }));
      },
      questions,
    );
    const { first, after: behind } = await experiment('Passages first, or after the rules');
    for (const row of [...first, ...behind]) assert.equal(row.measured, row.expected, JSON.stringify(row));
    // The same passages go with the same questions.
    assert.deepEqual(
      first.map(({ passages }) => passages),
      behind.map(({ passages }) => passages),
    );
    assert.equal(first[0].measured, 0);
    assert.equal(behind[0].measured, 0);
    const [place] = new Set(behind.map(({ at }) => at));
    assert.ok(first.every(({ at }) => at < 16) && place > 60, `${first[0].at} and ${place}`);
    for (const index of [1, 2]) {
      assert.ok(behind[index].measured >= place, 'all that stands in front of the passages is reused');
      assert.ok(behind[index].measured > 2 * first[index].measured, JSON.stringify([first[index], behind[index]]));
    }
    await nothingWrong();
  });

  test('earlier turns that stay as they were are reused whole', async () => {
    const { moved, kept } = await experiment('Earlier passages moved, or kept');
    for (const row of [...moved, ...kept]) assert.equal(row.measured, row.expected, JSON.stringify(row));
    // The context has room for two turns at least.
    assert.ok(kept.length >= 2 && kept.length === moved.length, JSON.stringify(kept));
    for (const index of kept.keys()) {
      if (index === 0) continue;
      // All of the last prompt but what ends it for the answer to begin.
      assert.ok(kept[index].measured >= kept[index - 1].prompt - 16, JSON.stringify(kept));
      assert.ok(moved[index].measured < kept[index].measured, JSON.stringify([moved[index], kept[index]]));
    }
    assert.ok(moved[1].measured <= moved[0].at, 'the first turn changed where its passages were');
    await nothingWrong();
  });

  const finished = (count) =>
    page.waitForFunction((wanted) => document.querySelectorAll('.stats').length === wanted, {}, count);
  async function ask(text, count) {
    await page.waitForSelector('.composer textarea');
    await page.type('.composer textarea', text);
    await page.keyboard.press('Enter');
    await finished(count);
  }
  /** Tokens cached and computed of each answer, and the sources below it. */
  const answers = () =>
    page.$$eval('.answer', (all) =>
      all.map((one) => ({
        cached: Number(one.querySelector('.stats .reused dd').textContent.replace(/\D/g, '')),
        computed: Number(one.querySelector('.stats .computed dd').textContent.replace(/\D/g, '')),
        sources: [...one.querySelectorAll('.source')].map(({ dataset }) => [Number(dataset.source), dataset.passage]),
      })),
    );

  test('in the chat a question takes its passages along, and the turns before it stay cached', async () => {
    await page.evaluate(() => {
      location.hash = '#/chat';
    });
    const button = await page.waitForSelector('.documents-button:enabled');
    await button.evaluate((one) => one.click());
    await page.waitForSelector('dialog[open] [role=switch]');
    await page.$eval('dialog[open] [role=switch]', (one) => one.click());
    await page.keyboard.press('Escape');
    await page.waitForSelector('.documents-button.is-on');
    await ask('When can a tent be returned?', 1);
    await ask('What does Norway cost?', 2);
    const [first, second] = await answers();
    assert.ok(first.sources.length >= 1 && first.sources.length <= 4, JSON.stringify(first));
    assert.equal(first.sources[0][0], 1);
    // A passage has one number in all of a conversation, and numbers go on.
    const numbers = new Map([...first.sources, ...second.sources].map(([number, id]) => [id, number]));
    for (const [number, id] of [...first.sources, ...second.sources]) assert.equal(numbers.get(id), number);
    assert.deepEqual(
      [...numbers.values()],
      [...numbers].map((_, index) => index + 1),
    );
    // Of the first turn, prompt and answer are reused but for its last tokens.
    assert.ok(second.cached >= first.cached + first.computed, JSON.stringify([first, second]));
    await nothingWrong();
  });

  test('citations open their passages, by keyboard too; other numbers stay text', async () => {
    const source = {
      number: 1,
      title: 'Tents',
      file: 'shop.md',
      path: ['Shop'],
      page: 2,
      text: '14 days.',
      passage: 'x/1',
    };
    const messages = [
      { id: 'q', parent: null, role: 'user', text: 'When?', created: 1, status: 'done', sources: [source] },
      { id: 'a', parent: 'q', role: 'assistant', text: 'In 14 days [1], not 30 [7].', created: 2, status: 'done' },
    ];
    const conversation = { title: 'Cited', leaf: 'a', updated: Date.now() + 60_000, messages };
    const json = JSON.stringify({ format: 'pagewise-chats', version: 1, conversations: [conversation] });
    const input = await page.waitForSelector('aside [aria-label="Files to import"]');
    await input.uploadFile(fileOf('cited.json', json));
    await page.waitForSelector('dialog[open] .button.primary');
    await page.$eval('dialog[open] .button.primary', (button) => button.click());
    await page.$eval('.item a', (link) => link.click());
    await page.waitForSelector('.cite');
    assert.deepEqual(await page.$$eval('.cite', (all) => all.map((one) => [one.textContent, one.ariaLabel])), [
      ['1', 'Source 1: Tents, shop.md, page 2, Shop'],
    ]);
    assert.match(await page.$eval('.answer .prose', (one) => one.textContent), /not 30 \[7\]/);
    await page.$eval('.cite', (one) => one.focus());
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open] .passage-text');
    assert.equal(await page.$eval('dialog[open] .passage-text', (one) => one.textContent), '14 days.');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog') && document.activeElement?.matches('.cite'));
    await page.$eval('.source', (one) => one.click());
    await page.waitForSelector('dialog[open] .passage-text');
    await page.keyboard.press('Escape');
    await nothingWrong();
  });

  test('documents outlive a reload', async () => {
    await page.goto(`${server.url}?lang=en#/labs/documents`);
    await page.waitForFunction(() => document.querySelectorAll('.document-list > li').length === 3);
    assert.match((await search('tent', '14 days'))[0][1], /Tents.*shop\.md, Shop › Tents/);
    await nothingWrong();
  });
});
