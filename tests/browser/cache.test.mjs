// The prefix cache through the npm package in a real browser: what is reused, what is reported, and that no answer changes.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { defaultModel } from '../../scripts/models.mjs';
import { BROWSER, usePackage } from './package.mjs';

const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const system = { role: 'system', content: 'You answer with a single word and nothing else, whatever you are asked.' };
const first = [user('Name a colour.')];

/** Blocks as they are, whenever one looks. */
const withoutTimes = (blocks) =>
  blocks.map(({ cached, ...block }) => ({ ...block, cached: cached && { ...cached, idleMs: 0, expiresInMs: 0 } }));

describe(`the prefix cache in ${BROWSER}`, () => {
  const opened = usePackage();
  const { call } = opened;
  const chat = (messages, more = {}) => call('chat', { messages, max_tokens: 6, ...more });

  const start = async () => {
    await opened.page.waitForFunction(() => globalThis.test);
    await call('load', `/models/${defaultModel().sources[0]}`, { contextLength: 512 });
    await call('listen');
  };

  before(() => start());

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

  test('a request can be explained before it is sent, and nothing changes', async () => {
    const asked = [system, user('Name an animal that lives in the sea.')];
    await chat(asked, { max_tokens: 1, prompt_cache_key: 'explained' });
    const edited = [system, user('Name an animal that lives in the woods.')];
    const look = async () => [await call('cache', 'stats'), await call('cache', 'blocks').then(withoutTimes)];
    const before = await look();
    const explained = await call('cache', 'explain', { messages: edited, prompt_cache_key: 'explained' });
    assert.deepEqual(await look(), before);
    const { miss, doctor } = explained;
    assert.equal(miss.reason, 'differs');
    assert.ok(miss.before.endsWith(' in the'), miss.before);
    assert.ok(miss.expected_text.startsWith(' sea.') && miss.found_text.startsWith(' woods.'), JSON.stringify(miss));
    assert.deepEqual([doctor.miss, doctor.cause, doctor.place.message], [true, 'edited', 1]);
    assert.ok(doctor.fraction.lost > 0 && doctor.fraction.lost < 1, JSON.stringify(doctor.fraction));
    // And so it is when it is sent.
    const { usage, cache } = await chat(edited, { max_tokens: 1, prompt_cache_key: 'explained' });
    assert.equal(usage.prompt_tokens, explained.prompt_tokens);
    assert.equal(cache.read_tokens, explained.cached_tokens);
    const { position, reason, expected, found } = miss;
    assert.deepEqual(cache.miss, { position, reason, expected, found });
    const [group] = (await call('cache', 'stats')).groups;
    assert.deepEqual([group.key, group.numRequests], ['explained', 2]);
    assert.ok(group.cachedTokens >= cache.read_tokens && group.hitRate > 0 && group.hitRate < 1, JSON.stringify(group));
    // A text, and what nobody asked before.
    const text = await call('cache', 'explain', { prompt: 'Once upon a time', cache: { salt: 'nobody' } });
    assert.deepEqual([text.cached_tokens, text.miss.reason, text.doctor], [0, 'cold', null]);
  });

  test('a prompt that nothing was computed for explains nothing', async () => {
    const explained = await opened.page.evaluate(async () => {
      const engine = globalThis.test.engine();
      const cache = { salt: 'never computed' };
      // A system prompt of its own: the template's default one is cached under another salt.
      const messages = [
        { role: 'system', content: 'Nobody ever computed this, under no salt at all.' },
        { role: 'user', content: 'Really?' },
      ];
      const request = { messages, max_tokens: 1, cache };
      // Others have all the slots, so that it is cancelled while it waits.
      const others = new AbortController();
      const busy = Array.from({ length: 4 }, (_, i) => {
        return engine.completions
          .create({ prompt: [10 + i], max_tokens: 100 }, { signal: others.signal })
          .catch(() => null);
      });
      const controller = new AbortController();
      const given = engine.chat.completions.create(request, { signal: controller.signal }).catch(({ code }) => code);
      const { numWaiting } = await engine.metrics();
      controller.abort();
      const explained = await engine.cache.explain(request);
      others.abort();
      await Promise.all(busy);
      return [numWaiting, await given, explained];
    });
    const [numWaiting, code, { cached_tokens, miss, doctor }] = explained;
    assert.ok(numWaiting > 0);
    assert.deepEqual([code, cached_tokens, miss.reason, doctor], ['cancelled', 0, 'cold', null]);
  });

  test('what outlives its time is told as expired', async () => {
    const messages = [user('This is kept for a moment and no longer.')];
    await chat(messages, { max_tokens: 1, cache: { ttl_seconds: 0.001, salt: 'moment' } });
    const again = await chat(messages, { max_tokens: 1, cache: { salt: 'moment' } });
    assert.equal(again.cache.miss.reason, 'expired');
    const kinds = await opened.page.evaluate(() => [...new Set(globalThis.test.events.map(({ kind }) => kind))]);
    assert.ok(kinds.includes('expired') && kinds.includes('stored') && kinds.includes('hit'), kinds.join());
  });

  test('a conversation that was saved goes on warm after a reload', async () => {
    const asked = [system, user('Name an animal that swims.')];
    const one = await chat(asked);
    const conversation = [...asked, assistant(one.text)];
    const size = await call('saveTo', 'conversation', conversation);
    const known = one.usage.prompt_tokens + one.usage.completion_tokens - 1;
    await opened.page.reload();
    await start();
    const turn = [...conversation, user('Another one.')];
    const cold = await chat(turn, { cache: { enabled: false } });
    // Damage is noticed, and nothing of it is kept.
    for (const flipAt of [3, 100, size - 20]) {
      await assert.rejects(call('restoreFrom', 'conversation', { flipAt }), /saved prefix/);
    }
    assert.equal((await call('cache', 'stats')).numNodes, 0);
    const restored = await call('restoreFrom', 'conversation', { name: 'kept', pin: true });
    assert.deepEqual(restored, { tokens: known - (known % 16), blocks: Math.floor(known / 16) });
    const warm = await chat(turn);
    assert.equal(warm.text, cold.text);
    // The ids of the answer came back too: encoding its text again could give others.
    assert.equal(warm.usage.prompt_tokens_details.cached_tokens, restored.tokens);
    assert.equal((await call('cache', 'stats')).numRestored, restored.blocks);
    const events = await opened.page.evaluate(() => globalThis.test.events.filter(({ kind }) => kind === 'restored'));
    assert.deepEqual(events, [{ kind: 'restored', position: 0, numTokens: restored.tokens, group: 0 }]);
    const prefixes = await call('cache', 'prefixes');
    assert.ok(
      prefixes.some(({ name, isPinned }) => name === 'kept' && isPinned),
      JSON.stringify(prefixes),
    );
    await call('cache', 'unpin', conversation);
    await assert.rejects(call('saveTo', 'nothing', [user('Nobody ever asked this.')]), /warm it first/);
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
