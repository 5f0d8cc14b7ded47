// Models in the browser's own storage: downloaded, gone on with after a reload and a cut, loaded without a server, deleted.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultModel, modelFile } from '../../scripts/models.mjs';
import { BROWSER, openTab, usePackage } from './package.mjs';

const TINY = '/models/tiny-llama-f16.gguf';
/** Large enough for several requests. */
const LARGE = `/models/${defaultModel().sources[0]}`;
const SIZE = defaultModel().bytes;
/** Longest wait for half of it, on a machine that has other things to do. */
const WAIT_MS = 240_000;
const isModel = (request) => request.url.startsWith('/models/') && request.url.endsWith('.gguf');
/** First byte and the one after the last; the first request of a file asks for 16 bytes. */
const rangeOf = ({ headers }) => {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
  return { first: Number(first), end: Number(last) + 1 };
};
const isHead = (request) => rangeOf(request).end === 16;

describe(`stored models in ${BROWSER}`, () => {
  let asked = [];
  let intercept = () => false;
  const opened = usePackage({
    intercept: (request, response) => {
      if (!isModel(request)) return false;
      asked.push(rangeOf(request));
      return intercept(request, response);
    },
  });
  const { call } = opened;
  const models = (...args) => call('models', ...args);
  const reload = async () => {
    await opened.page.reload();
    await opened.page.waitForFunction(() => globalThis.test);
  };
  const goOffline = () => {
    intercept = (_, response) => {
      response.writeHead(404).end();
      return true;
    };
  };
  const answer = () =>
    opened.page.evaluate(async () => {
      const request = { prompt: [5, 6, 7, 8, 9, 10, 11, 12], max_tokens: 8, temperature: 0 };
      return (await globalThis.test.engine().completions.create(request)).choices[0].text;
    });

  beforeEach(() => {
    asked = [];
    intercept = () => false;
  });

  for (const withoutFiles of [false, true]) {
    const where = withoutFiles ? 'IndexedDB' : 'the file system';

    test(`${where}: a stored model is loaded, after a reload and without a server, and answers the same`, async () => {
      const options = { contextLength: 256, autotune: false, withoutFiles };
      await call('load', TINY, options);
      const text = await answer();
      await call('load', TINY, { ...options, store: true });
      assert.equal(await answer(), text);
      await reload();
      goOffline();
      asked = [];
      await call('load', TINY, options);
      assert.equal(await answer(), text);
      assert.deepEqual(asked, []);
      assert.equal(await models('delete', TINY, { withoutFiles }), true);
      const code = await opened.page.evaluate(
        (url, o) => globalThis.test.load(url, o).catch((error) => error.code),
        TINY,
        options,
      );
      assert.equal(code, 'network');
      assert.deepEqual(await models('list', { withoutFiles }), []);
    });

    test(`${where}: a download that a reload interrupted goes on`, async () => {
      // The last range never comes.
      intercept = (request) => !isHead(request) && rangeOf(request).end === SIZE;
      await opened.page.evaluate(
        (url, o) => {
          const keep = ({ message }) => {
            globalThis.failure = message;
          };
          globalThis.test.models('download', url, o).catch(keep);
        },
        LARGE,
        { withoutFiles },
      );
      const limit = Date.now() + WAIT_MS;
      let there;
      for (;;) {
        [there] = await models('list', { withoutFiles });
        if (there?.storedBytes >= SIZE / 2) break;
        const failure = await opened.page.evaluate(() => globalThis.failure);
        assert.equal(failure, undefined, 'the download ended');
        const state = JSON.stringify({ there, asked });
        assert.ok(Date.now() < limit, `less than half came in ${WAIT_MS / 1000} s: ${state}`);
        await sleep(50);
      }
      assert.equal(await models('has', LARGE, { withoutFiles }), false);
      await reload();
      [there] = await models('list', { withoutFiles });
      assert.deepEqual([there.isComplete, there.bytes], [false, SIZE]);
      asked = [];
      intercept = () => false;
      const { sha256 } = defaultModel();
      const stored = await models('download', LARGE, { sha256, withoutFiles });
      assert.deepEqual([stored.isComplete, stored.sha256], [true, [sha256]]);
      const numFetched = asked.slice(1).reduce((sum, { first, end }) => sum + end - first, 0);
      assert.ok(numFetched > 0 && numFetched <= SIZE / 2, `${numFetched} bytes were fetched again`);
      assert.equal(await models('has', LARGE, { withoutFiles }), true);
      assert.equal(await models('delete', LARGE, { withoutFiles }), true);
    });

    test(`${where}: a connection that was cut is gone on with, and what came is right`, async () => {
      let cut;
      intercept = (request, response) => {
        const { first, end } = rangeOf(request);
        if (isHead(request) || cut !== undefined || first === 0) return false;
        cut = { first, at: first + Math.floor((end - first) / 3), end };
        const headers = { 'content-range': `bytes ${first}-${end - 1}/${SIZE}`, 'content-length': end - first };
        response.writeHead(206, headers);
        fs.createReadStream(modelFile(defaultModel()), { start: first, end: cut.at - 1 })
          .on('data', (piece) => response.write(piece))
          .on('end', () => setTimeout(() => response.destroy(), 200));
        return true;
      };
      const { sha256 } = defaultModel();
      const stored = await models('download', LARGE, { sha256, withoutFiles });
      assert.equal(stored.storedBytes, SIZE);
      // What was on its way when it was cut may have been lost.
      const [, goesOn, ...more] = asked.filter(({ end }) => end === cut.end);
      assert.ok(goesOn.first >= cut.first && goesOn.first <= cut.at, JSON.stringify({ asked, cut }));
      assert.deepEqual(more, []);
      assert.equal(await models('delete', LARGE, { withoutFiles }), true);
    });
  }

  test('an aborted download can be gone on with at once', async () => {
    intercept = (request) => !isHead(request) && rangeOf(request).end === SIZE;
    const [code, stored] = await opened.page.evaluate(async (url) => {
      const { models } = globalThis.test;
      const controller = new AbortController();
      const onProgress = ({ loadedBytes }) => loadedBytes > 0 && controller.abort();
      const code = await models('download', url, { onProgress, signal: controller.signal }).catch(
        (error) => error.code,
      );
      return [code, await models('list')];
    }, LARGE);
    assert.equal(code, 'cancelled');
    assert.deepEqual(
      stored.map(({ isComplete }) => isComplete),
      [false],
    );
    intercept = () => false;
    assert.equal((await models('download', LARGE)).storedBytes, SIZE);
    assert.equal(await models('delete', LARGE), true);
  });

  test('a second page waits for the first, and finds the model', async () => {
    const other = await openTab(opened.browser, `${opened.url}test/`);
    const download = (page) => page.evaluate((url) => globalThis.test.models('download', url), LARGE);
    const [one, two] = await Promise.all([download(opened.page), download(other)]);
    assert.deepEqual(two, one);
    const numFetched = asked.reduce((sum, { first, end }) => sum + end - first, 0);
    assert.equal(numFetched, SIZE + 16);
    await other.close();
    assert.equal(await models('delete', LARGE), true);
  });

  test('a page in place of a model, and a model with another hash, are not stored', async () => {
    intercept = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Log in</title>');
      return true;
    };
    const download = (options) =>
      opened.page.evaluate(
        (url, o) => globalThis.test.models('download', url, o).catch(({ code, message }) => [code, message]),
        TINY,
        options,
      );
    const page = await download({});
    assert.equal(page[0], 'corrupt_model');
    assert.match(page[1], /a web page/);
    intercept = () => false;
    const wrong = await download({ sha256: '0'.repeat(64) });
    assert.equal(wrong[0], 'corrupt_model');
    assert.match(wrong[1], /nothing of it was kept/);
    assert.equal(await models('has', TINY), false);
    const uncaught = opened.problems.filter((problem) => problem.startsWith('uncaught'));
    assert.deepEqual(uncaught, []);
  });
});
