/** The states of documents, in the lab and in the chat, for screenshots.mjs. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const query = '?model=smollm2-135m-instruct';
const folder = mkdtempSync(join(tmpdir(), 'pagewise-'));

/** A file for a file chooser. */
function fileOf(name, contents) {
  const file = join(folder, name);
  writeFileSync(file, contents);
  return file;
}

const HANDBOOK = fileOf(
  'handbook.md',
  '# Harbour shop\n\n## Returns\n\nA tent can be returned within 14 days, if it is dry.\n\n## Repairs\n\nA bicycle under warranty is repaired at pier 4.\n\n## Warranty\n\nBicycles have five years of warranty on the frame.\n',
);
const ANSWER = 'The workshop at pier 4 repairs it [1]. The frame has five years of warranty [2], not ten [9].';

/** Adds files where the library is shown, and waits for what becomes of them. */
async function add(page, files, sign) {
  const input = await page.waitForSelector('.add-documents input[type=file]');
  await input.uploadFile(...files);
  await page.waitForSelector(sign);
}

async function openPanel(page) {
  const button = await page.waitForSelector('.documents-button:enabled');
  await page.waitForSelector('section.status');
  await button.click();
  await page.waitForSelector('dialog[open] .documents');
}

async function cited(page) {
  await openPanel(page);
  await add(page, [HANDBOOK], '.document-list li');
  await page.waitForSelector('.documents-button.is-on');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !document.querySelector('dialog'));
  await page.type('.composer textarea', 'Who repairs a bicycle under warranty?');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.stats');
  await page.waitForSelector('.cite');
}

export const DOCUMENT_STATES = {
  documents: {
    query,
    act: async (page) => {
      await openPanel(page);
      const bad = [fileOf('program.txt', 'a\0b'), fileOf('nothing.md', '')];
      await add(page, [HANDBOOK, ...bad], '.document-list li');
      await page.waitForFunction(() => document.querySelectorAll('.document-problem').length === 2);
      await page.click('.document-list summary');
      await page.waitForSelector('.passages button');
    },
  },
  cited: { query, fake: { answer: ANSWER }, act: cited },
  source: {
    query,
    fake: { answer: ANSWER },
    act: async (page) => {
      await cited(page);
      await page.$eval('.cite', (button) => button.click());
      await page.waitForSelector('dialog[open] .passage-text');
    },
  },
  'lab-documents-empty': { hash: '#/labs/documents', act: (page) => page.waitForSelector('.actions button') },
  'lab-documents': {
    query,
    hash: '#/labs/documents',
    isTall: true,
    act: async (page) => {
      await page.waitForSelector('.experiment');
      await page.$eval('.documents ~ .actions button', (button) => button.click());
      await page.waitForSelector('.experiment:enabled');
      // The question that stands in the empty field, in either language.
      const question = await page.$eval('input[type=search]', (input) => input.placeholder);
      await page.type('input[type=search]', question);
      await page.waitForSelector('.hit');
      await page.$eval('.experiment', (button) => button.click());
      await page.waitForSelector('.orders[data-done=true]');
      await page.waitForSelector('.experiment:enabled');
    },
  },
};
