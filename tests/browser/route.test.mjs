// OpenAI's own client, as it comes from npm, against the page's engine: through the service worker, and without one.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { models, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';
import { BROWSER, buildClient, openTab } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';
const OTHER = '/models/tiny-gemma3-f16.gguf';
const SITE = path.join(root, 'target', 'route-site');

/** The site: its page, OpenAI's client as a module, and the copy of the service worker that a site makes. */
async function buildSite() {
  fs.rmSync(SITE, { recursive: true, force: true });
  fs.mkdirSync(SITE, { recursive: true });
  fs.copyFileSync(await buildClient(), path.join(SITE, 'openai.mjs'));
  fs.cpSync(path.join(root, 'tests/browser/page/route'), SITE, { recursive: true });
  fs.copyFileSync(path.join(root, 'js/dist/service-worker.js'), path.join(SITE, 'pagewise-service-worker.js'));
  const own = `importScripts('/pagewise-service-worker.js');
    addEventListener('fetch', (event) => {
      if (new URL(event.request.url).pathname === '/own') event.respondWith(new Response("the site's own"));
    });`;
  fs.writeFileSync(path.join(SITE, 'own.js'), own);
  snippets().forEach((code, index) => {
    const page = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">';
    fs.writeFileSync(
      path.join(SITE, `snippet${index}.html`),
      `${page}<script type="module" src="snippet${index}.mjs"></script>`,
    );
    fs.writeFileSync(path.join(SITE, `snippet${index}.mjs`), `${code}\nglobalThis.isDone = true;\n`);
  });
}

/** The examples of js/README.md with OpenAI's client, their imports resolved as a bundler would, with a smaller model. */
function snippets() {
  const readme = fs.readFileSync(path.join(root, 'js/README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  const replaced = [
    ["from 'pagewise'", "from '/js/dist/index.js'"],
    ["from 'openai'", "from '/openai.mjs'"],
    ["'smollm2-135m-instruct'", `'${MODEL}', { contextLength: 256 }`],
  ];
  const resolve = (code) => replaced.reduce((text, [from, to]) => text.replace(from, to), code);
  return blocks.filter((code) => code.includes("from 'openai'")).map(resolve);
}

describe(`OpenAI's client in ${BROWSER}`, () => {
  let server;
  let opened;
  let page;
  /** Runs `code` in the page; it gets the helpers and `args`. As text, because the page's policy has no eval. */
  const inPage = (code, ...args) => page.evaluate(`(${code})(globalThis.test, ...${JSON.stringify(args)})`);
  const inOther = (other, code, ...args) => other.evaluate(`(${code})(globalThis.test, ...${JSON.stringify(args)})`);

  const open = () => openTab(opened.browser, server.url);

  before(async () => {
    await buildSite();
    server = await serve({ mounts: { '/models/': models, '/js/': path.join(root, 'js'), '/': SITE } });
    opened = await launch({ browser: BROWSER });
    page = opened.page;
    await page.goto(server.url);
    await page.waitForFunction(() => globalThis.test);
    await inPage(({ load }, url) => load(url), MODEL);
  });

  after(async () => {
    await opened?.close();
    await server?.close();
  });

  test('the route is registered and controls the page', async () => {
    const url = await inPage(({ register }) => register());
    assert.equal(url, `${server.url}v1`);
    const script = await page.evaluate(() => navigator.serviceWorker.controller?.scriptURL);
    assert.equal(script, `${server.url}pagewise-service-worker.js?path=v1%2F`);
    // What is not under the route comes from the server as ever, and so do navigations.
    const others = await page.evaluate(async () => {
      const [file, missing] = [await fetch('page.mjs'), await fetch('v2/models')];
      return [file.status, await missing.text()];
    });
    assert.deepEqual(others, [200, 'not found\n']);
  });

  test('an answer is what response_format asks, at any temperature', async () => {
    const properties = {
      kind: { enum: ['fruit', 'vegetable'] },
      num_pieces: { type: 'integer', minimum: 0, maximum: 99 },
      note: { type: ['string', 'null'], maxLength: 8 },
    };
    const schema = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
    const found = await inPage(async ({ client, engine, failure }, given) => {
      const openai = client('route');
      const ask = { model: engine().info.id, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 200 };
      const format = (of, strict) => ({ type: 'json_schema', json_schema: { name: 'answer', strict, schema: of } });
      const answers = [];
      for (const temperature of [0, 1.5]) {
        const params = { ...ask, temperature, seed: 3, n: 2, response_format: format(given, true) };
        const { choices } = await openai.chat.completions.create(params);
        answers.push(...choices.map(({ message, finish_reason }) => [message.content, finish_reason]));
      }
      let streamed = '';
      const params = { ...ask, temperature: 0, stream: true, response_format: format(given, false) };
      for await (const chunk of await openai.chat.completions.create(params)) {
        streamed += chunk.choices[0]?.delta.content ?? '';
      }
      const text = { model: ask.model, prompt: 'Hi', regex: '(yes|no)!' };
      const completion = await openai.completions.create(text);
      const bad = { ...ask, response_format: format({ properties: { a: { uniqueItems: true } } }, true) };
      return {
        answers,
        streamed,
        short: completion.choices[0].text,
        bad: await failure(openai.chat.completions.create(bad)),
      };
    }, schema);
    for (const [text, reason] of found.answers) {
      assert.equal(reason, 'stop');
      const answer = JSON.parse(text);
      assert.deepEqual(Object.keys(answer), Object.keys(properties));
      assert.ok(properties.kind.enum.includes(answer.kind), text);
      assert.ok(Number.isInteger(answer.num_pieces) && answer.num_pieces >= 0 && answer.num_pieces < 100, text);
      assert.ok(answer.note === null || [...answer.note].length <= 8, text);
    }
    assert.equal(found.streamed, found.answers[0][0], 'greedy');
    assert.match(found.short, /^(yes|no)!$/);
    assert.deepEqual([found.bad.status, found.bad.param], [400, 'response_format.json_schema.schema']);
    assert.match(
      found.bad.message,
      /response_format\.json_schema\.schema\/properties\/a: uniqueItems is not supported/,
    );
  });

  for (const way of ['route', 'fetch']) {
    test(`${way}: chat and completions are the engine's own answers, streamed or not`, async () => {
      const found = await inPage(async ({ client, engine }, w) => {
        const openai = client(w);
        const model = engine().info.id;
        const params = { model, max_tokens: 12, temperature: 0, messages: [{ role: 'user', content: 'Hi' }] };
        const own = await engine().chat.completions.create(params);
        const { data, response, request_id } = await openai.chat.completions.create(params).withResponse();
        const stream_options = { include_usage: true };
        let [text, usage, num] = ['', null, 0];
        for await (const chunk of await openai.chat.completions.create({ ...params, stream: true, stream_options })) {
          text += chunk.choices[0]?.delta.content ?? '';
          usage = chunk.usage ?? usage;
          num += 1;
        }
        const prompt = { model, prompt: 'Once', max_tokens: 12, temperature: 0 };
        const [ownText, whole] = [await engine().completions.create(prompt), await openai.completions.create(prompt)];
        let pieces = '';
        for await (const chunk of await openai.completions.create({ ...prompt, stream: true })) {
          pieces += chunk.choices[0]?.text ?? '';
        }
        const headers = Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('x-')));
        return { own, data, headers, request_id, text, usage, num, ownText, whole, pieces };
      }, way);
      const { own, data, text, usage, ownText, whole, pieces, headers } = found;
      const expected = own.choices[0].message.content;
      assert.ok(expected !== '');
      assert.equal(data.choices[0].message.content, expected);
      assert.equal(data.object, 'chat.completion');
      assert.equal(text, expected);
      assert.ok(found.num > 3, `${found.num} chunks`);
      assert.equal(usage.total_tokens, own.usage.total_tokens);
      assert.equal(whole.choices[0].text, ownText.choices[0].text);
      assert.equal(pieces, ownText.choices[0].text);
      assert.equal(headers['x-pagewise-queue-depth'], '0');
      assert.equal(headers['x-pagewise-estimated-wait-ms'], '0');
      assert.match(found.request_id, /^req-/);
    });

    test(`${way}: log-probabilities are those of the logits, and embeddings are unit vectors`, async () => {
      const found = await inPage(async ({ client, engine, idle }, w) => {
        const openai = client(w);
        const model = engine().info.id;
        const prompt = await engine().tokenize('Once', { addSpecial: true });
        // What is drawn differs from what is probable.
        const params = { model, prompt, max_tokens: 3, logprobs: 5, n: 2, seed: 1, logit_bias: { 70: 50, 71: 50 } };
        const { choices } = await openai.completions.create(params);
        const streamed = [[], []];
        for await (const { choices: some } of await openai.completions.create({ ...params, stream: true })) {
          for (const { index, logprobs } of some) streamed[index].push(...(logprobs?.token_logprobs ?? []));
        }
        const messages = [{ role: 'user', content: 'Hi' }];
        const ask = { model, messages, max_tokens: 3, temperature: 0, logprobs: true, top_logprobs: 5 };
        const [chat] = (await openai.chat.completions.create(ask)).choices;
        const tokens = [];
        for await (const { choices: some } of await openai.chat.completions.create({ ...ask, stream: true })) {
          for (const { logprobs } of some) tokens.push(...(logprobs?.content ?? []));
        }
        const { data, usage } = await openai.embeddings.create({ model, input: ['one', 'two', 'one'] });
        await idle();
        const asked = await engine().tokenize(await engine().applyTemplate(messages), { parseSpecial: true });
        const rows = [];
        for (const ids of [prompt, asked]) rows.push([...(await engine().logits(ids))[0]]);
        return { choices, streamed, chat, tokens, rows, data, usage };
      }, way);
      const { choices, streamed, chat, tokens, data } = found;
      /** The five best of a token are those of the logits. */
      const isOf = (logprobs, row) => {
        const sum = row.reduce((total, logit) => total + Math.exp(logit), 0);
        const expected = row.map((logit) => logit - Math.log(sum)).sort((a, b) => b - a);
        const sorted = logprobs.sort((a, b) => b - a);
        for (const [place, logprob] of sorted.slice(0, 5).entries()) {
          assert.ok(Math.abs(logprob - expected[place]) < 1e-3, `${logprob}, ${expected[place]}`);
        }
      };
      isOf(Object.values(choices[0].logprobs.top_logprobs[0]), found.rows[0]);
      const [first] = chat.logprobs.content;
      isOf(
        first.top_logprobs.map(({ logprob }) => logprob),
        found.rows[1],
      );
      // Greedily, what is drawn is what is most probable.
      assert.deepEqual([first.token, first.logprob], [first.top_logprobs[0].token, first.top_logprobs[0].logprob]);
      assert.deepEqual(
        tokens.map(({ token, bytes }) => [token, bytes]),
        chat.logprobs.content.map(({ token, bytes }) => [token, bytes]),
      );
      assert.equal(Buffer.from(chat.logprobs.content.flatMap(({ bytes }) => bytes)).toString(), chat.message.content);
      assert.equal(tokens.length, 3);
      for (const [index, { logprobs }] of choices.entries()) {
        assert.equal(logprobs.token_logprobs.length, 3);
        assert.deepEqual(streamed[index], logprobs.token_logprobs);
      }
      const dot = (a, b) => data[a].embedding.reduce((total, value, i) => total + value * data[b].embedding[i], 0);
      assert.ok(Math.abs(dot(0, 0) - 1) < 1e-4 && Math.abs(dot(0, 2) - 1) < 1e-4, `${dot(0, 0)}, ${dot(0, 2)}`);
      assert.ok(dot(0, 1) < 0.999, `${dot(0, 1)}`);
      assert.ok(found.usage.prompt_tokens > 0);
    });

    test(`${way}: a tool is called, and the turn behind the call reuses it`, async () => {
      const found = await inPage(async ({ client, engine }, w) => {
        const openai = client(w);
        const parameters = {
          ...{ type: 'object', properties: { at: { enum: [1, 2] } } },
          ...{ required: ['at'], additionalProperties: false },
        };
        const tools = [{ type: 'function', function: { name: 'rain', strict: true, parameters } }];
        const params = { model: engine().info.id, temperature: 0, tools, messages: [{ role: 'user', content: 'Hi' }] };
        const stream = openai.chat.completions.stream({
          ...{ ...params, tool_choice: 'required', parallel_tool_calls: false },
          stream_options: { include_usage: true },
        });
        const deltas = [];
        stream.on('tool_calls.function.arguments.delta', (delta) => deltas.push(delta.arguments_delta));
        stream.on('error', () => {});
        const { choices, usage } = await stream.finalChatCompletion();
        const [{ message, finish_reason }] = choices;
        const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'No' };
        const next = await openai.chat.completions.create({
          ...params,
          max_tokens: 2,
          messages: [...params.messages, message, result],
        });
        return { message, finish_reason, deltas, usage, next: next.usage };
      }, way);
      const [call] = found.message.tool_calls;
      assert.equal(found.finish_reason, 'tool_calls');
      assert.equal(call.function.name, 'rain');
      assert.ok([1, 2].includes(JSON.parse(call.function.arguments).at), call.function.arguments);
      assert.match(call.id, /^call_\w{24}$/);
      assert.equal(found.deltas.join(''), call.function.arguments);
      // The whole answer but for its last token, which nothing had to be computed behind.
      const { cached_tokens } = found.next.prompt_tokens_details;
      assert.ok(cached_tokens > found.usage.prompt_tokens, `${cached_tokens} of ${JSON.stringify(found)}`);
    });

    test(`${way}: models`, async () => {
      const found = await inPage(async ({ client, failure }, w) => {
        const { models: of } = client(w);
        const { data } = await of.list();
        return { data, one: await of.retrieve(data[0].id), none: await failure(of.retrieve('gpt-4o')) };
      }, way);
      assert.equal(found.data.length, 1);
      assert.equal(found.data[0].id, 'tiny-llama-f16');
      assert.deepEqual(found.one, found.data[0]);
      assert.equal(found.none.kind, 'NotFoundError');
    });

    test(`${way}: errors are OpenAI's classes, with the field and a code`, async () => {
      const found = await inPage(async ({ client, engine, failure }, w) => {
        const openai = client(w);
        const params = { model: engine().info.id, messages: [{ role: 'user', content: 'Hi' }] };
        const ask = (more) => failure(openai.chat.completions.create({ ...params, ...more }));
        return {
          field: await ask({ temperature: 9 }),
          streamed: await ask({ stream: true, functions: [] }),
          model: await ask({ model: 'gpt-4o' }),
          long: await ask({ messages: [{ role: 'user', content: 'word '.repeat(2000) }] }),
          late: await ask({ deadline_ms: 0.001 }),
          address: await failure(openai.moderations.create({ input: 'b' })),
          width: await failure(openai.embeddings.create({ model: params.model, input: 'b', dimensions: 8 })),
        };
      }, way);
      const of = ({ kind, status, type, param, code }) => [kind, status, type, param, code];
      const bad = ['BadRequestError', 400, 'invalid_request_error'];
      assert.deepEqual(of(found.field), [...bad, 'temperature', 'invalid_value']);
      assert.deepEqual(of(found.streamed), [...bad, 'functions', 'unsupported_parameter']);
      assert.deepEqual(of(found.width), [...bad, 'dimensions', 'unsupported_parameter']);
      assert.deepEqual(of(found.long), [...bad, 'messages', 'context_length_exceeded']);
      const missing = ['NotFoundError', 404, 'invalid_request_error'];
      assert.deepEqual(of(found.model), [...missing, 'model', 'model_not_found']);
      assert.deepEqual(of(found.address), [...missing, null, 'unknown_url']);
      const late = ['InternalServerError', 504, 'timeout_error', null, 'deadline_exceeded'];
      assert.deepEqual(of(found.late), late);
    });

    test(`${way}: headers say how many wait before a request`, async () => {
      const found = await inPage(async ({ client, engine, idle, endless }, w) => {
        const openai = client(w);
        const ask = { ...endless, model: engine().info.id, prompt: 'Once', max_tokens: 400 };
        // Four run at once.
        const controller = new AbortController();
        const { signal } = controller;
        const others = Array.from({ length: 7 }, () => engine().completions.create(ask, { signal }));
        const depths = [];
        const note = ({ response }) => depths.push(Number(response.headers.get('x-pagewise-queue-depth')));
        while ((await engine().metrics()).numWaiting < 3) await new Promise((resolve) => setTimeout(resolve, 1));
        note(await openai.models.list().withResponse());
        const { data, response } = await openai.completions.create({ ...ask, stream: true }).withResponse();
        note({ response });
        const waitMs = Number(response.headers.get('x-pagewise-estimated-wait-ms') ?? Number.NaN);
        data.controller.abort();
        controller.abort();
        await Promise.allSettled(others);
        await idle();
        return { depths, waitMs };
      }, way);
      assert.deepEqual(found.depths, [3, 3]);
      assert.ok(found.waitMs > 0, `${found.waitMs} ms`);
    });

    test(`${way}: aborting cancels the answer in the engine`, async () => {
      const found = await inPage(async ({ client, engine, failure, idle, endless }, w) => {
        const openai = client(w);
        const params = { ...endless, model: engine().info.id, prompt: 'Once', max_tokens: 400 };
        const before = await idle();
        const left = await openai.completions.create({ ...params, stream: true });
        let num = 0;
        for await (const _ of left) if (++num === 3) break;
        const afterLeaving = await idle();

        const stopped = await openai.completions.create({ ...params, stream: true });
        for await (const _ of stopped) stopped.controller.abort();
        const afterAbort = await idle();

        const controller = new AbortController();
        const whole = failure(openai.completions.create(params, { signal: controller.signal }));
        while ((await engine().metrics()).numRunning === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        controller.abort();
        const error = await whole;
        const all = [before, afterLeaving, afterAbort, await idle()];
        return { error, cancelled: all.map((m) => m.numCancelled), tokens: all.map((m) => m.generatedTokens) };
      }, way);
      assert.equal(found.error.kind, 'APIUserAbortError');
      const [start, ...later] = found.cancelled;
      assert.deepEqual(
        later.map((num) => num - start),
        [1, 2, 3],
      );
      assert.ok(found.tokens.at(-1) - found.tokens[0] < 3 * 400, JSON.stringify(found.tokens));
    });
  }

  test('the service worker is stopped, and started again by the next request', async (t) => {
    if (BROWSER !== 'chromium') return t.skip('only Chromium can be told to stop it');
    const session = await page.createCDPSession();
    const seen = [];
    session.on('ServiceWorker.workerVersionUpdated', ({ versions }) =>
      seen.push(...versions.map(({ runningStatus }) => runningStatus)),
    );
    await session.send('ServiceWorker.enable');
    const ask = () => inPage(async ({ client }) => (await client('route').models.list()).data[0].id);
    assert.equal(await ask(), 'tiny-llama-f16');
    const until = async (status) => {
      while (seen.at(-1) !== status) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await session.send('ServiceWorker.stopAllWorkers');
    await until('stopped');
    assert.equal(await ask(), 'tiny-llama-f16');
    await until('running');
    // While a stream is under way: it breaks, and is computed no further.
    const before = await inPage(({ idle }) => idle());
    const broken = inPage(async ({ client, engine, endless, failure }) => {
      const params = { ...endless, model: engine().info.id, prompt: 'Once', max_tokens: 400, stream: true };
      const stream = await client('route').completions.create(params);
      const read = async () => {
        for await (const _ of stream) globalThis.isUnderWay = true;
      };
      return failure(read());
    });
    await page.waitForFunction(() => globalThis.isUnderWay, { polling: 20 });
    await session.send('ServiceWorker.stopAllWorkers');
    assert.notEqual(await broken, null);
    const after = await inPage(({ idle }) => idle());
    assert.equal(after.numCancelled, before.numCancelled + 1);
    assert.equal(await ask(), 'tiny-llama-f16');
    await session.detach();
  });

  test('a tab is served by the one that has the model, and told when it is gone', async () => {
    const other = await open();
    const ask = (model) =>
      inOther(
        other,
        async ({ client, failure }, m) => {
          const params = { model: m, prompt: 'Once', max_tokens: 4 };
          const answering = client('route').completions.create(params);
          return { error: await failure(answering), model: (await answering.catch(() => null))?.model };
        },
        model,
      );
    assert.deepEqual(await ask('tiny-llama-f16'), { error: null, model: 'tiny-llama-f16' });
    assert.equal((await ask('tiny-gemma3-f16')).error.kind, 'NotFoundError');
    const third = await open();
    await inOther(third, ({ load }, url) => load(url), OTHER);
    await inOther(third, ({ register }) => register());
    for (const model of ['tiny-gemma3-f16', 'tiny-llama-f16']) {
      assert.deepEqual(await ask(model), { error: null, model });
    }
    // It is closed while it answers.
    const streamed = inOther(other, async ({ client, endless, failure }) => {
      const params = { ...endless, model: 'tiny-gemma3-f16', prompt: 'Once', max_tokens: 500 };
      const stream = await client('route').completions.create({ ...params, stream: true });
      const read = async () => {
        for await (const _ of stream) globalThis.isUnderWay = true;
      };
      return failure(read());
    });
    // By a timer: a tab that is not seen draws no frames.
    await other.waitForFunction(() => globalThis.isUnderWay, { polling: 20 });
    await third.close();
    const error = await streamed;
    assert.deepEqual([error.kind, error.code], ['APIError', 'no_engine']);
    assert.equal((await ask('tiny-gemma3-f16')).error.kind, 'NotFoundError');
    await other.close();
  });

  test('after unregistering nobody answers', async () => {
    const error = await inPage(async ({ client, failure, route }) => {
      await route().unregister();
      return failure(client('route').models.list());
    });
    // This page keeps its worker until it is left.
    assert.deepEqual([error.kind, error.status, error.code], ['InternalServerError', 503, 'no_engine']);
    assert.match(error.message, /registerRoute/);
    await page.reload();
    await page.waitForFunction(() => globalThis.test);
    const left = await page.evaluate(async () => [
      (await navigator.serviceWorker.getRegistrations()).length,
      navigator.serviceWorker.controller,
    ]);
    assert.deepEqual(left, [0, null]);
  });

  test("a site's own service worker can be the route", async () => {
    await inPage(({ load }, url) => load(url), MODEL);
    const found = await inPage(async ({ client, failure, register, registerRoute, engine }) => {
      const registration = await navigator.serviceWorker.register('/own.js');
      const before = await failure(register());
      const { baseURL } = await registerRoute(engine(), { registration });
      const { data } = await client('route').models.list();
      const own = await (await fetch('/own')).text();
      return { baseURL, before, data, own, num: (await navigator.serviceWorker.getRegistrations()).length };
    });
    assert.equal(found.baseURL, `${server.url}v1`);
    assert.equal(found.data[0].id, 'tiny-llama-f16');
    assert.equal(found.own, "the site's own");
    assert.ok(found.before.message.includes('has another service worker'), JSON.stringify(found.before));
    await page.evaluate(async () => (await navigator.serviceWorker.getRegistration()).unregister());
    await page.reload();
    await page.waitForFunction(() => globalThis.test);
  });

  test('what cannot be registered says why', async () => {
    await inPage(({ load }, url) => load(url), MODEL);
    const of = (options) =>
      inPage(
        ({ register }, o) =>
          register(o).then(
            () => null,
            ({ code, message }) => ({ code, message }),
          ),
        options,
      );
    for (const [options, text] of [
      [{ scriptURL: '/missing.js' }, 'cannot be a service worker'],
      [{ scope: '/elsewhere/' }, 'is not under'],
      [{ path: 'https://example.com/v1/' }, 'path'],
      [{ url: '/v1/' }, 'url is not supported'],
    ]) {
      if (options.path !== undefined) options.scope = '/';
      const error = await of(options);
      assert.equal(error?.code, 'bad_request', JSON.stringify(options));
      assert.ok(error.message.includes(text), error.message);
    }
  });

  test('the examples of the README run', async () => {
    assert.equal(snippets().length, 2);
    for (const index of snippets().keys()) {
      const other = await opened.browser.newPage();
      const printed = [];
      other.on('console', (message) => printed.push(message.text()));
      const failed = new Promise((_, reject) => other.once('pageerror', reject));
      await other.goto(`${server.url}snippet${index}.html`);
      await Promise.race([failed, other.waitForFunction(() => globalThis.isDone === true, { timeout: 60_000 })]);
      assert.ok(printed.join('') !== '', JSON.stringify(printed));
      await other.close();
    }
  });

  test('nothing was against the policy', async () => {
    assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  });
});
