// `pagewise/remote` against llama.cpp's own server, a process of its own with the tiny model: its answers have to be those
// that ours are, in our shapes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Router } from '../../js/dist/remote.js';
import { findLlamaServer } from '../../scripts/llama-server.mjs';
import { models } from '../../scripts/paths.mjs';

const program = findLlamaServer();
const messages = [{ role: 'user', content: 'Hi' }];
/** What `pagewise generate --temperature 0` answers to that, and to `abc`. */
const ANSWER = '9# sט';
const CONTINUED = 'isӿis) b f;';

/** Starts it on a port that is free; resolves when it answers. */
async function start() {
  const file = path.join(models, 'tiny-llama-f16.gguf');
  const args = [
    '--model',
    file,
    '--port',
    '0',
    '--threads',
    '1',
    '--ctx-size',
    '512',
    '--parallel',
    '2',
    '--gpu-layers',
    '0',
  ];
  const env = { ...process.env, LD_LIBRARY_PATH: path.dirname(program) };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const url = await new Promise((resolve, reject) => {
    const read = (piece) => {
      text += piece;
      const address = /listening on (http:\/\/127\.0\.0\.1:[1-9]\d*)/.exec(text);
      if (address) resolve(address[1]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('exit', (code) => reject(new Error(`llama-server ended (${code}): ${text.slice(-2000)}`)));
  });
  return { child, baseURL: `${url}/v1` };
}

const suite = () => {
  let server;
  let router;

  before(async () => {
    server = await start();
    router = await Router.load('any', { policy: 'remote', remote: { baseURL: server.baseURL } });
  });

  after(() => server?.child.kill());

  test('a whole answer', async () => {
    const answer = await router.chat.completions.create({ messages, temperature: 0, max_tokens: 5, priority: 'batch' });
    assert.equal(answer.choices[0].message.content, ANSWER);
    assert.equal(answer.choices[0].finish_reason, 'length');
    assert.equal(answer.computed_on, 'remote');
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [17, 5, 22]);
  });

  test('a streamed answer: the same text, and tokens that its cache had', async () => {
    const params = { messages, temperature: 0, max_tokens: 5, stream: true, stream_options: { include_usage: true } };
    let text = '';
    let usage;
    for await (const chunk of await router.chat.completions.create(params)) {
      assert.equal(chunk.computed_on, 'remote');
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, ANSWER);
    assert.equal(usage.prompt_tokens_details.cached_tokens, 16);
  });

  test('a text is continued', async () => {
    const answer = await router.completions.create({ prompt: 'abc', temperature: 0, max_tokens: 8 });
    assert.equal(answer.choices[0].text, CONTINUED);
  });

  test('errors are ours', async () => {
    const create = (params) => router.chat.completions.create({ messages, ...params });
    const long = [{ role: 'user', content: 'a'.repeat(4000) }];
    await assert.rejects(create({ messages: long }), { name: 'PagewiseError', code: 'context_too_long' });
    await assert.rejects(create({ temperature: -1 }), { code: 'bad_request' });
    const nobody = await Router.load('any', {
      policy: 'remote',
      remote: { baseURL: `${server.baseURL}/none`, model: 'm' },
    });
    await assert.rejects(nobody.chat.completions.create({ messages }), { code: 'bad_request', status: 404 });
  });

  test('an abort and a deadline end an answer in the middle', async () => {
    const abort = new AbortController();
    const params = { messages, temperature: 0, max_tokens: 5, stream: true };
    const stream = await router.chat.completions.create(params, { signal: abort.signal });
    const read = async () => {
      for await (const _ of stream) abort.abort();
    };
    await assert.rejects(read(), { code: 'cancelled' });
    await assert.rejects(router.completions.create({ prompt: 'abc', max_tokens: 200, deadline_ms: 0.001 }), {
      code: 'deadline_exceeded',
    });
  });
};

if (program !== null) describe('llama-server', suite);
else test('llama-server', { skip: 'no llama-server here: LLAMA_SERVER=path names one' });
