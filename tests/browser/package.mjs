// What the tests of the npm package have in common: a page that loads it as a plain module, without a bundler.
import path from 'node:path';
import { models, pageDist, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';

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
