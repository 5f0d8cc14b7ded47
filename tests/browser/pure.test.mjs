// What needs no engine and no GPU works in a page, under the strict policy: the module starts there by itself.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';

const BROWSER = process.env.BROWSER ?? 'chromium';

describe(`the package's tools in ${BROWSER}`, () => {
  let server;
  let opened;

  before(async () => {
    server = await serve({
      mounts: { '/js/': path.join(root, 'js'), '/test/': path.join(root, 'tests/browser/page') },
    });
    opened = await launch({ browser: BROWSER });
    await opened.page.goto(`${server.url}test/`);
    await opened.page.waitForFunction(() => globalThis.test);
  });

  after(async () => {
    await opened?.close();
    await server?.close();
  });

  test('the prompt doctor', async () => {
    const found = await opened.page.evaluate(() =>
      globalThis.test.explainMiss([{ role: 'system', content: 'It is 10:00.' }], {
        messages: [{ role: 'system', content: 'It is 10:05.', name: undefined }],
      }),
    );
    assert.equal(found.cause, 'timestamp');
    assert.deepEqual([found.previous.text, found.next.text], ['10:00', '10:05']);
    assert.deepEqual(found.place, { part: 'message', message: 0, role: 'system', character: 10 });
    const code = await opened.page.evaluate(() => globalThis.test.explainMiss(3, 'a').catch(({ code }) => code));
    assert.equal(code, 'bad_request');
    assert.deepEqual(opened.problems, []);
  });

  test('the memory calculator', async () => {
    const params = { numLayers: 80, kvHeads: 8, headDim: 128, contextLength: 131_072, kv: 'f16' };
    const { totalBytes } = await opened.page.evaluate((p) => globalThis.test.kvMemory(p), params);
    assert.equal(totalBytes, 40 * 2 ** 30);
    assert.deepEqual(opened.problems, []);
  });
});
