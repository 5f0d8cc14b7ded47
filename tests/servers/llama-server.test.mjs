// `pagewise/remote` against llama.cpp's own server, a process of its own with the tiny model: its answers have to be those
// that ours are, in our shapes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Router } from '../../js/dist/remote.js';
import { findLlamaServer } from '../../scripts/llama-server.mjs';
import { models, root } from '../../scripts/paths.mjs';

const program = findLlamaServer();
const messages = [{ role: 'user', content: 'Hi' }];
/** What `pagewise generate --temperature 0` answers to that, and to `abc`. */
const ANSWER = '9# sט';
/** Its id of `{`. */
const BRACE = 94;
const CONTINUED = 'isӿis) b f;';

/** Starts it on a port that is free; resolves when it answers. */
async function start() {
  const file = path.join(models, 'tiny-llama-f16.gguf');
  // The model's own template knows of no tools; without them, this one says the same.
  const template = path.join(root, 'tests/servers/tools.jinja');
  const args = [
    ...['--model', file, '--chat-template-file', template, '--jinja', '--port', '0'],
    ...['--threads', '1', '--ctx-size', '1024', '--parallel', '2', '--gpu-layers', '0'],
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

  test('an answer keeps to a schema, streamed or not', async () => {
    const properties = { kind: { enum: ['fruit', 'tree'] }, num: { type: 'integer', minimum: 0, maximum: 9 } };
    const schema = { type: 'object', properties, required: ['kind', 'num'], additionalProperties: false };
    const response_format = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } };
    const params = { messages, temperature: 0, max_tokens: 200, response_format };
    const { choices } = await router.chat.completions.create(params);
    const [{ message, finish_reason }] = choices;
    assert.equal(finish_reason, 'stop');
    const { kind, num, ...more } = JSON.parse(message.content);
    assert.ok(properties.kind.enum.includes(kind) && Number.isInteger(num), message.content);
    assert.deepEqual(more, {});
    let text = '';
    for await (const chunk of await router.chat.completions.create({ ...params, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    assert.equal(text, message.content);
  });

  test('a tool is called, streamed or not, and the call and its result go back', async () => {
    const parameters = {
      ...{ type: 'object', properties: { at: { enum: ['Bern', 'Rome'] } } },
      ...{ required: ['at'], additionalProperties: false },
    };
    const tools = [{ type: 'function', function: { name: 'rain', parameters } }];
    const params = { messages, tools, temperature: 0, max_tokens: 100, parallel_tool_calls: false };
    // The server lets text come before a call, and a call begin with a brace: random weights would never write one.
    const called = { ...params, tool_choice: 'required', logit_bias: { [BRACE]: 100 } };
    const { choices } = await router.chat.completions.create(called);
    const [{ message, finish_reason }] = choices;
    assert.equal(finish_reason, 'tool_calls');
    assert.equal(message.tool_calls.length, 1);
    const [call] = message.tool_calls;
    assert.deepEqual([call.type, call.function.name], ['function', 'rain']);
    assert.ok(['Bern', 'Rome'].includes(JSON.parse(call.function.arguments).at), call.function.arguments);

    const deltas = [];
    for await (const { choices } of await router.chat.completions.create({ ...called, stream: true })) {
      deltas.push(...(choices[0]?.delta.tool_calls ?? []));
    }
    assert.ok(deltas.length > 2 && deltas.every(({ index }) => index === 0), JSON.stringify(deltas));
    assert.equal(deltas.map(({ function: { name = '' } }) => name).join(''), 'rain');
    assert.equal(deltas.map((delta) => delta.function.arguments ?? '').join(''), call.function.arguments);

    const result = { role: 'tool', tool_call_id: call.id, content: 'No' };
    const next = await router.chat.completions.create({
      ...params,
      ...{ messages: [...messages, message, result], tool_choice: 'none' },
      ...{ max_tokens: 1, logit_bias: { [BRACE]: 100 } },
    });
    // Nothing is read as the beginning of a call.
    assert.deepEqual([next.choices[0].message.content, next.choices[0].message.tool_calls], ['{', undefined]);
    assert.ok(next.usage.prompt_tokens > 40, JSON.stringify(next.usage));
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
