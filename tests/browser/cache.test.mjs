// The prefix cache through the npm package in a real browser: what is reused, what is reported, and that no answer changes.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { defaultModel } from '../../scripts/models.mjs';
import { models, pageDist, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';

const BROWSER = process.env.BROWSER ?? 'chromium';
const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const system = { role: 'system', content: 'You answer with a single word and nothing else, whatever you are asked.' };
const first = [user('Name a colour.')];

describe(`the prefix cache in ${BROWSER}`, () => {
  let server;
  let opened;
  const call = (name, ...args) => opened.page.evaluate((n, a) => globalThis.test[n](...a), name, args);
  const chat = (messages, more = {}) => call('chat', { messages, max_tokens: 6, ...more });

  before(async () => {
    const mounts = {
      '/models/': models,
      '/js/': path.join(root, 'js'),
      '/test/': path.join(root, 'tests/browser/page'),
      '/': pageDist,
    };
    server = await serve({ mounts });
    opened = await launch({ browser: BROWSER });
    await opened.page.goto(`${server.url}test/`);
    await opened.page.waitForFunction(() => globalThis.test);
    await call('load', `/models/${defaultModel().sources[0]}`, { contextLength: 512 });
    await call('listen');
  });

  after(async () => {
    await opened?.close();
    await server?.close();
  });

  test('a second turn computes its new tokens alone, and answers as without the cache', async () => {
    const one = await chat(first);
    assert.equal(one.usage.prompt_tokens_details.cached_tokens, 0);
    const messages = [...first, assistant(one.text), user('Another one.')];
    const two = await chat(messages);
    // All of the first turn but its last token, which was drawn and never computed.
    const known = one.usage.prompt_tokens + one.usage.completion_tokens - 1;
    assert.equal(two.usage.prompt_tokens_details.cached_tokens, known);
    assert.equal(two.cache.read_tokens, known);
    const without = await chat(messages, { cache: { enabled: false } });
    assert.equal(without.text, two.text);
    assert.equal(without.usage.prompt_tokens, two.usage.prompt_tokens);
    assert.equal(without.usage.prompt_tokens_details.cached_tokens, 0);
    assert.equal(without.cache.miss.reason, 'disabled');
  });

  test('a warmed system prompt serves a new chat; other salts never meet it', async () => {
    await call('cache', 'warm', [system]);
    const messages = [{ ...system, cache_control: { type: 'ephemeral', ttl: '1h' } }, user('What flies?')];
    const warm = await chat(messages, { max_tokens: 1 });
    assert.ok(warm.usage.prompt_tokens_details.cached_tokens >= 16, JSON.stringify(warm.usage));
    const salted = await chat(messages, { max_tokens: 1, cache: { salt: 'another tenant' } });
    assert.equal(salted.usage.prompt_tokens_details.cached_tokens, 0);
    assert.equal(salted.text, warm.text);
  });

  test('what is cached can be seen, and cleared', async () => {
    const stats = await call('cache', 'stats');
    const [blocks, prefixes] = [await call('cache', 'blocks'), await call('cache', 'prefixes')];
    assert.ok(blocks.length > 0 && prefixes.length > 0, JSON.stringify({ stats, prefixes }));
    assert.ok(await opened.page.evaluate(() => globalThis.test.events.length > 0), 'events came');
    await call('cache', 'clear');
    const again = await chat(first, { max_tokens: 1 });
    assert.equal(again.usage.prompt_tokens_details.cached_tokens, 0);
    assert.deepEqual(opened.problems, []);
  });
});
