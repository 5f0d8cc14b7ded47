// All that OpenAI's client asks for, from a tab that does not have the engine: a shared worker has it, or another tab.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { models, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';
import { BROWSER, buildClient, openTab } from './package.mjs';

const MODEL = '/models/tiny-llama-f16.gguf';
/** In this format a call begins with a brace, so a bias decides whether the model, whose weights are random, makes one. */
const OPTIONS = { autotune: false, toolFormat: 'llama3' };
/** Ids of the model. */
const [END, SEMICOLON, BRACE] = [2, 30, 94];
const CALLING = { [BRACE]: 100, [END]: 50 };

const objectOf = (properties) => ({
  ...{ type: 'object', properties },
  ...{ required: Object.keys(properties), additionalProperties: false },
});
/** Short: the model's context is 512 tokens, and its vocabulary hardly more than bytes. */
const RAIN = { properties: { at: { enum: [1, 2] } }, required: ['at'], additionalProperties: false };
const TOOLS = [
  { type: 'function', function: { name: 'rain', strict: true, parameters: RAIN } },
  { type: 'function', function: { name: 'sun', strict: true } },
];
const ASK = { messages: [{ role: 'user', content: 'Hi' }], temperature: 0 };

const near = (some, others) =>
  assert.ok(
    some.length === others.length && some.every((value, index) => Math.abs(value - others[index]) < 1e-3),
    JSON.stringify([some, others]),
  );

const KINDS = [
  ['a shared worker', true, 'follower'],
  ['another tab', { owner: 'tab', name: 'surface' }, 'leader'],
];

for (const [where, share, role] of KINDS) {
  describe(`OpenAI's client where ${where} has the engine, in ${BROWSER}`, () => {
    let server;
    let opened;
    let owner;
    let tab;
    /** Runs `code` in a page; it gets the helpers and `args`. As text, because the page's policy has no eval. */
    const run = (page, code, ...args) => page.evaluate(`(${code})(globalThis.test, ...${JSON.stringify(args)})`);
    /** Asks by way of the client in the tab; answers the choice. */
    const ask = (params) =>
      run(
        tab,
        async ({ client, engine }, given) => {
          const { choices } = await client('fetch').chat.completions.create({ model: engine().info.id, ...given });
          return choices[0];
        },
        { ...ASK, ...params },
      );
    /** As {@link ask}, streamed and put together by the client; answers the pieces of arguments as well. */
    const stream = (params) =>
      run(
        tab,
        async ({ client, engine }, given) => {
          const streamed = client('fetch').chat.completions.stream({ model: engine().info.id, ...given });
          const pieces = [];
          streamed.on('tool_calls.function.arguments.delta', (delta) => pieces.push(delta.arguments_delta));
          const { choices } = await streamed.finalChatCompletion();
          return { choice: choices[0], pieces };
        },
        { ...ASK, ...params },
      );

    before(async () => {
      const mounts = {
        '/models/': models,
        '/js/': path.join(root, 'js'),
        '/openai.mjs': await buildClient(),
        '/': path.join(root, 'tests/browser/page/route'),
      };
      server = await serve({ mounts });
      opened = await launch({ browser: BROWSER });
      [owner, tab] = [await openTab(opened.browser, server.url), await openTab(opened.browser, server.url)];
      for (const page of [owner, tab]) {
        await run(page, ({ load }, ...args) => load(...args), MODEL, { ...OPTIONS, share });
      }
      const roles = [owner, tab].map((page) => run(page, ({ engine }) => engine().sharing.role));
      assert.deepEqual(await Promise.all(roles), [role, 'follower']);
    });

    after(async () => {
      await opened?.close();
      await server?.close();
    });

    test('chat, its log-probabilities, and embeddings are those of the engine', async () => {
      const params = { ...ASK, max_tokens: 8, logprobs: true, top_logprobs: 3 };
      const input = ['one', 'two'];
      const own = await run(
        owner,
        async ({ engine }, given, texts) => {
          const { choices } = await engine().chat.completions.create(given);
          const { data } = await engine().embeddings.create({ input: texts });
          return { choice: choices[0], embeddings: data.map(({ embedding }) => embedding) };
        },
        params,
        input,
      );
      const whole = await ask(params);
      const { choice: streamed } = await stream(params);
      for (const { message, finish_reason, logprobs } of [whole, streamed]) {
        assert.deepEqual([message.content, finish_reason], [own.choice.message.content, 'length']);
        const told = own.choice.logprobs.content;
        assert.equal(told.length, 8);
        assert.deepEqual(
          logprobs.content.map(({ token, bytes }) => [token, bytes]),
          told.map(({ token, bytes }) => [token, bytes]),
        );
        const values = (all) =>
          all.flatMap(({ logprob, top_logprobs }) => [logprob, ...top_logprobs.map((top) => top.logprob)]);
        assert.equal(values(told).length, 8 * 4);
        near(values(logprobs.content), values(told));
      }
      const embedded = await run(
        tab,
        async ({ client, engine }, texts) => {
          const { data } = await client('fetch').embeddings.create({ model: engine().info.id, input: texts });
          return data.map(({ embedding }) => embedding);
        },
        input,
      );
      assert.equal(embedded.length, 2);
      for (const [index, embedding] of embedded.entries()) near(embedding, own.embeddings[index]);
    });

    test('an answer keeps to a schema, streamed or not', async () => {
      const schema = objectOf({ kind: { enum: ['fruit', 'tree'] }, num: { type: 'integer', minimum: 0, maximum: 9 } });
      const response_format = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } };
      const whole = await ask({ response_format });
      const { kind, num, ...more } = JSON.parse(whole.message.content);
      assert.ok(['fruit', 'tree'].includes(kind) && Number.isInteger(num) && num < 10, whole.message.content);
      assert.deepEqual(more, {});
      const { choice } = await stream({ response_format });
      assert.deepEqual([choice.message.content, choice.finish_reason], [whole.message.content, 'stop']);
    });

    test('a grammar that crashes its compiler ends its own request, and the next one finds a new compiler', async () => {
      const found = await run(tab, async ({ engine }) => {
        const ask = (params) => engine().completions.create({ prompt: [5, 6, 7], max_tokens: 20, ...params });
        const texts = [];
        for (let round = 0; round < 2; round++) {
          // A panic of llguidance's, in whose place a grammar too large for the stack would do.
          const crashing = ask({ grammar: 'start: a "x"\na[lazy]: /.*/' });
          texts.push(await crashing.catch(({ code, message }) => `${code} ${message}`));
          const { choices } = await ask({ regex: '(yes|no)!' });
          texts.push(choices[0].text);
        }
        return texts;
      });
      for (const at of [0, 2]) {
        assert.match(found[at], /^bad_request the compiler of constraints failed/);
        assert.match(found[at + 1], /^(yes|no)!$/);
      }
    });

    /** Names of the functions that are called; all arguments are right. */
    const called = ({ message }) =>
      message.tool_calls.map(({ id, function: { name, arguments: text } }) => {
        assert.match(id, /^call_\w{24}$/);
        const given = JSON.parse(text);
        assert.ok(name === 'sun' ? text === '{}' : [1, 2].includes(given.at) && Object.keys(given).length === 1, text);
        return name;
      });

    test('tools: no call where the model writes none, and one where it does', async () => {
      const text = await ask({ tools: TOOLS, max_tokens: 4 });
      assert.deepEqual([text.message.tool_calls, text.finish_reason], [undefined, 'length']);
      const auto = { tools: TOOLS, tool_choice: 'auto', logit_bias: CALLING };
      const whole = await ask(auto);
      assert.equal(whole.finish_reason, 'tool_calls');
      const { choice, pieces } = await stream(auto);
      assert.deepEqual(called(choice), called(whole));
      assert.equal(pieces.join(''), choice.message.tool_calls[0].function.arguments);
    });

    test('tools: one by name, its arguments in pieces', async () => {
      for (const name of ['rain', 'sun']) {
        const tool_choice = { type: 'function', function: { name } };
        const { choice, pieces } = await stream({ tools: TOOLS, tool_choice, logit_bias: CALLING });
        assert.deepEqual([called(choice), choice.finish_reason], [[name], 'tool_calls']);
        assert.ok(name === 'sun' || pieces.length > 1, JSON.stringify(pieces));
        assert.equal(pieces.join(''), choice.message.tool_calls[0].function.arguments);
      }
    });

    test('tools: several in one answer, unless that is not wanted', async () => {
      // The end is less wanted than one more call, until there is one.
      const bias = { logit_bias: { [SEMICOLON]: 54, [END]: 52 }, presence_penalty: 2, frequency_penalty: 2 };
      const required = { tools: TOOLS, tool_choice: 'required', ...bias };
      const { choice, pieces } = await stream(required);
      const names = called(choice);
      assert.equal(choice.finish_reason, 'tool_calls');
      assert.ok(names.length > 1, JSON.stringify(choice));
      const calls = choice.message.tool_calls;
      assert.equal(new Set(calls.map(({ id }) => id)).size, calls.length);
      assert.equal(pieces.join(''), calls.map((call) => call.function.arguments).join(''));
      assert.deepEqual(called(await ask({ ...required, parallel_tool_calls: false })), names.slice(0, 1));
    });

    test('nothing was left uncaught', async () => {
      assert.deepEqual(opened.problems, []);
      for (const page of [owner, tab]) assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    });
  });
}
