// The packed npm package in the hands of others: bundlers, a page without one, TypeScript, Node, and two linters.
//
// Every page loads the tiny model and has to answer what the reference answers; those that are plain files do it under the
// strict policy of scripts/server.mjs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { buildConsumers, consumers, tool, toolEnv } from '../../scripts/consumers.mjs';
import { models, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { attempt } from '../../scripts/shell.mjs';
import { launch } from '../browser/launch.mjs';

const golden = JSON.parse(fs.readFileSync(path.join(root, 'tests/data/golden/tiny.json'), 'utf8'));
const [, reference] = golden.cases['tiny-llama'];

const MODEL = '/models/tiny-llama-f16.gguf';

/** Whose engine is in a shared worker. */
const SHARED = ['esbuild', 'next', 'webpack'];

/** Plain files of a consumer; the page without a bundler reads the package where npm puts it. */
const files = (name, built = '') => ({
  '/models/': models,
  '/node_modules/': path.join(consumers, 'node_modules'),
  '/': path.join(consumers, name, built),
});

/** Opens a page in a browser of its own: two of them share nothing but the processor. */
async function open(url, use) {
  const { page, problems, close } = await launch({ browser: 'chromium' });
  const failed = new Promise((_, reject) => {
    page.on('pageerror', reject);
  });
  failed.catch(() => undefined);
  try {
    await page.goto(url);
    await use(page, (condition) => Promise.race([page.waitForFunction(condition), failed]));
    assert.deepEqual(problems, []);
  } finally {
    await close();
  }
}

/** Opens a page that loads the model, and asks; what is `more` is asked of the same page. */
const check = (url, isShared, more = async () => undefined) =>
  open(url, async (page, until) => {
    await until(() => globalThis.engine);
    const found = await page.evaluate(async ({ ids, greedy }) => {
      const { engine, kvMemory } = globalThis;
      const request = { prompt: ids, max_tokens: greedy.length, temperature: 0 };
      const { choices } = await engine.completions.create(request);
      const { totalBytes } = await kvMemory({ numLayers: 1, kvHeads: 1, headDim: 2, contextLength: 16 });
      return { text: choices[0].text, expected: await engine.detokenize(greedy), totalBytes };
    }, reference);
    assert.equal(found.text, found.expected);
    // The module in the page itself, beside the worker's.
    assert.equal(found.totalBytes, 128);
    await more(page);
    await checkWorkers(page, isShared);
  });

/**
 * The second module is found where the engine is, for an answer under a constraint needs it: in a worker of the page, or in the
 * shared one. The other of both starts as well, with the first module. Two engines would have kernels compiled twice.
 */
async function checkWorkers(page, isShared) {
  const found = await page.evaluate(async (url) => {
    const { Engine, engine } = globalThis;
    const { choices } = await engine.completions.create({ prompt: 'Hi', regex: '(yes|no)!', temperature: 0 });
    const { architecture } = await Engine.inspect(url);
    // Without a shared worker that starts, the page has one of its own do it.
    const own = [];
    const construct = (target, args) => {
      own.push(String(args[0]));
      return new target(...args);
    };
    globalThis.Worker = new Proxy(Worker, { construct });
    const load = Engine.load(new Blob(['GGUF of no version']), { share: { name: 'nothing' } });
    const failure = await load.catch(({ code }) => code);
    return { text: choices[0].text, owner: engine.sharing?.owner ?? null, architecture, failure, own };
  }, MODEL);
  assert.match(found.text, /^(yes|no)!$/);
  assert.equal(found.owner, isShared ? 'shared-worker' : null);
  assert.deepEqual([found.architecture, found.failure, found.own], ['llama', 'unsupported_model', []]);
}

/** The AI SDK and the Prompt API give the engine's own answer, and sessions share what was computed. */
async function checkBridges(page) {
  const found = await page.evaluate(async () => {
    const { engine, bridges } = globalThis;
    const request = { messages: [{ role: 'user', content: 'Hi' }], temperature: 0 };
    const own = await engine.chat.completions.create({ ...request, max_tokens: 5 });
    const whole = await engine.chat.completions.create(request);
    const model = bridges.createPagewise(engine)();
    const sdk = await bridges.generateText({ model, prompt: 'Hi', temperature: 0, maxOutputTokens: 5 });
    const LanguageModel = bridges.createLanguageModel(engine);
    const session = await LanguageModel.create({ samplingMode: 'most-predictable' });
    const clone = await session.clone();
    const before = await engine.cache.stats();
    const answers = [await session.prompt('Hi'), await clone.prompt('Hi')];
    const { readTokens } = await engine.cache.stats();
    return {
      own: own.choices[0].message.content,
      whole: whole.choices[0].message.content,
      sdk: sdk.text,
      cached: sdk.usage.inputTokenDetails.cacheReadTokens,
      answers,
      usage: [session.contextUsage, clone.contextUsage],
      readTokens: readTokens - before.readTokens,
    };
  });
  assert.equal(found.own, '9# sט');
  assert.equal(found.sdk, found.own);
  assert.deepEqual(found.answers, [found.whole, found.whole]);
  assert.equal(found.usage[0], found.usage[1]);
  assert.equal(found.cached, 16);
  assert.equal(found.readTokens, 32);
}

// Two at a time: most of it is shaders being compiled, on one core each.
describe('consumers of the packed package', { concurrency: 2 }, () => {
  let tarball;

  before(async () => {
    ({ tarball } = await buildConsumers());
  });

  const pages = {
    page: files('page'),
    vite: files('vite', 'dist'),
    webpack: files('webpack'),
    esbuild: files('esbuild'),
  };
  for (const [name, mounts] of Object.entries(pages)) {
    test(`${name}: built files under the strict policy`, async () => {
      const server = await serve({ mounts });
      try {
        await check(server.url, SHARED.includes(name), name === 'vite' ? checkBridges : undefined);
      } finally {
        await server.close();
      }
    });
  }

  test("vite: its development server, which bundles the package's modules beforehand", async () => {
    const { createServer } = await import(path.join(consumers, 'node_modules/vite/dist/node/index.js'));
    const publicDir = path.join(consumers, 'next/public');
    const server = await createServer({ root: path.join(consumers, 'vite'), publicDir, logLevel: 'warn' });
    try {
      await server.listen();
      await open(`${server.resolvedUrls.local[0]}inspect.html`, async (page, until) => {
        await until(() => globalThis.found);
        assert.deepEqual(await page.evaluate(() => globalThis.found), { architecture: 'llama', totalBytes: 128 });
      });
    } finally {
      await server.close();
    }
  });

  test('vite: the older version that builds our own page finds the worker and the module', () => {
    const names = fs.readdirSync(path.join(consumers, 'vite-older', 'dist', 'assets'));
    for (const ending of [/^worker-.*\.js$/, /^pagewise_bg-.*\.wasm$/]) {
      assert.ok(
        names.some((name) => ending.test(name)),
        names.join(', '),
      );
    }
  });

  test('next: the app router renders it on the server and loads it in the browser', async () => {
    const started = spawn(tool('next'), ['start', '--port', '0', '--hostname', '127.0.0.1'], {
      cwd: path.join(consumers, 'next'),
      env: toolEnv,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      let text = '';
      for await (const chunk of started.stdout) {
        text += chunk;
        const url = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[0];
        if (url && /Ready/.test(text)) {
          await check(url, SHARED.includes('next'));
          break;
        }
      }
    } finally {
      started.kill();
    }
  });

  for (const config of ['tsconfig.json', 'tsconfig.node16.json']) {
    test(`TypeScript, strict: ${config}`, async () => {
      const cwd = path.join(consumers, 'types');
      const { code, output } = await attempt(tool('tsc'), ['-p', config], { cwd, quiet: true });
      assert.equal(code, 0, output);
    });
  }

  test('Node imports it, and says clearly that models need a browser', async () => {
    const cwd = path.join(consumers, 'node');
    const { code, output } = await attempt(process.execPath, ['index.mjs'], { cwd, quiet: true });
    assert.equal(code, 0, output);
  });

  test('licences and all that documents link are in the package', () => {
    const folder = path.join(consumers, 'node_modules', 'pagewise');
    for (const name of ['LICENSE-APACHE', 'LICENSE-MIT']) assert.ok(fs.existsSync(path.join(folder, name)), name);
    const names = fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.md'));
    assert.ok(names.includes(path.join('docs', 'recipes.md')), names.join(', '));
    for (const name of names) {
      // Not within code: `f[name](argument)` looks like a link.
      const text = fs.readFileSync(path.join(folder, name), 'utf8').replace(/^```[\s\S]*?^```$/gm, '');
      for (const [, link] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)) {
        assert.ok(fs.existsSync(path.join(folder, path.dirname(name), link)), `${name}: ${link}`);
      }
    }
    // And packing leaves the sources as they were.
    assert.doesNotMatch(fs.readFileSync(path.join(root, 'js/README.md'), 'utf8'), /\]\(docs\//);
  });

  test('publint and arethetypeswrong find nothing', async () => {
    const folder = path.join(consumers, 'node_modules', 'pagewise');
    const linted = await attempt(tool('publint'), [folder, '--strict'], { cwd: consumers, quiet: true });
    assert.equal(linted.code, 0, linted.output);
    const types = await attempt(tool('attw'), [tarball, '--profile', 'esm-only'], { cwd: consumers, quiet: true });
    assert.equal(types.code, 0, types.output);
  });
});
