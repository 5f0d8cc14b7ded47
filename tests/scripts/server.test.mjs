import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { parseRange, serve } from '../../scripts/server.mjs';

let folder;
let server;
let port;

before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-server-'));
  for (const name of ['page', 'models']) fs.mkdirSync(path.join(folder, name));
  fs.writeFileSync(path.join(folder, 'secret.txt'), 'secret');
  fs.writeFileSync(path.join(folder, 'page', 'index.html'), '<p>page</p>');
  fs.writeFileSync(path.join(folder, 'page', 'module.wasm'), '');
  fs.writeFileSync(path.join(folder, 'models', 'ten.gguf'), '0123456789');
  server = await serve({ mounts: { '/models/': path.join(folder, 'models'), '/': path.join(folder, 'page') } });
  port = Number(new URL(server.url).port);
});

after(async () => {
  await server.close();
  fs.rmSync(folder, { recursive: true });
});

const get = (name, options) => fetch(`http://127.0.0.1:${port}${name}`, options);

/** A request as written, which `fetch` would tidy up. */
function raw(line, host = 'localhost') {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('close', () => resolve(text));
    socket.write(`${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  });
}

test('serves the page with a policy that allows own scripts only', async () => {
  const response = await get('/');
  assert.equal(await response.text(), '<p>page</p>');
  const policy = response.headers.get('content-security-policy');
  assert.match(policy, /script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'/);
  assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval'?;? \*/);
});

test('names the type of a WebAssembly module, and serves an empty file', async () => {
  const response = await get('/module.wasm');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/wasm');
  assert.equal(await response.text(), '');
});

test('answers ranges with the bytes asked for', async () => {
  for (const [range, text, header] of [
    ['bytes=2-4', '234', 'bytes 2-4/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=-2', '89', 'bytes 8-9/10'],
    ['bytes=8-99', '89', 'bytes 8-9/10'],
  ]) {
    const response = await get('/models/ten.gguf', { headers: { range } });
    assert.equal(response.status, 206);
    assert.equal(response.headers.get('content-range'), header);
    assert.equal(await response.text(), text);
  }
  const outside = await get('/models/ten.gguf', { headers: { range: 'bytes=10-' } });
  assert.equal(outside.status, 416);
  assert.equal(outside.headers.get('content-range'), 'bytes */10');
});

test('ignores a range that it does not understand', () => {
  for (const header of [undefined, '', 'bytes=-', 'bytes=1-2,4-5', 'lines=1-2'])
    assert.equal(parseRange(header, 10), null);
  assert.equal(parseRange('bytes=5-4', 10), 'outside');
  assert.equal(parseRange('bytes=-0', 10), 'outside');
});

test('says not modified to a file that is known', async () => {
  const etag = (await get('/models/ten.gguf')).headers.get('etag');
  assert.equal((await get('/models/ten.gguf', { headers: { 'if-none-match': etag } })).status, 304);
});

test('never leaves its folders', async () => {
  for (const name of [
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/models/..%2f..%2fsecret.txt',
    '/models/../../secret.txt',
    '/%00',
    '/%',
  ]) {
    const answer = await raw(`GET ${name}`);
    assert.match(answer, /^HTTP\/1.1 404/, name);
    assert.doesNotMatch(answer, /secret$/);
  }
});

test('refuses other methods and other host names', async () => {
  assert.equal((await get('/', { method: 'POST' })).status, 405);
  assert.match(await raw('GET /', 'rebound.example'), /^HTTP\/1.1 403/);
});

test('takes the next port when the first is in use', async () => {
  const second = await serve({ mounts: {}, ports: [port, 0] });
  assert.notEqual(Number(new URL(second.url).port), port);
  await second.close();
});
