// What the tests of the npm package have in common: a page that loads it as a plain module, without a bundler.
import fs from 'node:fs';
import path from 'node:path';
import { after, before } from 'node:test';
import { build } from 'vite';
import { models, pageDist, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { whenChanged } from '../../scripts/stamp.mjs';
import { launch } from './launch.mjs';

export const BROWSER = process.env.BROWSER ?? 'chromium';
/** Longest wait for anything on a page that a test opens itself. */
const WAIT_MS = 180_000;
const CLIENT = path.join(root, 'target', 'openai-client');

/** Bundles OpenAI's client, as it comes from npm, to one module; answers its file. */
export async function buildClient() {
  const folder = path.join(root, 'node_modules/openai');
  const file = path.join(CLIENT, 'openai.mjs');
  const { version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  await whenChanged('openai-client', version, file, () => {
    const lib = { entry: path.join(folder, 'index.mjs'), formats: ['es'], fileName: () => 'openai.mjs' };
    return build({ configFile: false, logLevel: 'warn', build: { lib, outDir: CLIENT, minify: false } });
  });
  return file;
}

/** Another page of the browser, once its tests can begin. */
export async function openTab(browser, url) {
  const page = await browser.newPage();
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.test);
  return page;
}

/** Serves the package with the models and opens the page; `globalThis.test` there is `page/page.mjs`. `more` is for the server. */
export async function openPackage(browser, more = {}) {
  const mounts = {
    '/models/': models,
    '/js/': path.join(root, 'js'),
    '/test/': path.join(root, 'tests/browser/page'),
    '/': pageDist,
  };
  const server = await serve({ mounts, ...more });
  const opened = await launch({ browser });
  await opened.page.goto(`${server.url}test/`);
  await opened.page.waitForFunction(() => globalThis.test);
  const close = async () => {
    await opened.close();
    await server.close();
  };
  return { ...opened, url: server.url, close };
}

/**
 * The package's page for the tests of a `describe`, opened before them and closed behind them. It has what {@link openPackage}
 * answers, and `call(name, ...args)` for what is in `globalThis.test`.
 */
export function usePackage(more) {
  const opened = {
    call: (name, ...args) => opened.page.evaluate((n, a) => globalThis.test[n](...a), name, args),
  };
  before(async () => void Object.assign(opened, await openPackage(BROWSER, more)));
  after(() => opened.close?.());
  return opened;
}
