// Natively on lavapipe: Pagewise's own bench, and llama.cpp's server with its Vulkan backend.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findLavapipe } from '../../scripts/browsers.mjs';

const START_LIMIT_S = 240;

/** Lavapipe and no other driver, for both. */
function lavapipe() {
  const icd = findLavapipe();
  return { ...process.env, VK_DRIVER_FILES: icd, VK_ICD_FILENAMES: icd };
}

/** Pagewise through its command line: a process for each run, which loads, warms up and measures one request. */
export async function pagewiseNative({ program, model, contextLength }) {
  function measure({ ids, decodeTokens }) {
    const lengths = ['--prompt-tokens', ids.length, '--max-tokens', decodeTokens + 1].map(String);
    const args = ['bench', model, ...lengths, '--runs', '1', '--context', String(contextLength), '--json'];
    const { status, stdout, stderr } = spawnSync(program, args, { env: lavapipe(), encoding: 'utf8' });
    if (status !== 0) throw new Error(`pagewise ${args.join(' ')}: ${stdout}${stderr}`);
    const { adapter, kv, prefill_tokens_per_s, decode_tokens_per_s } = JSON.parse(stdout);
    Object.assign(contestant, { adapter, kv });
    return { prefill: prefill_tokens_per_s.median, decode: decode_tokens_per_s.median };
  }
  const version = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.trim().split(' ').at(-1);
  const contestant = { name: 'Pagewise', version, measure, close: () => {} };
  return contestant;
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function post(url, body) {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function untilHealthy(url, process, log) {
  for (const start_ms = Date.now(); Date.now() - start_ms < 1000 * START_LIMIT_S; await sleep(500)) {
    if (process.exitCode !== null) break;
    const response = await fetch(`${url}/health`).catch(() => null);
    if (response?.ok) return;
  }
  process.kill();
  throw new Error(`llama-server did not start: ${fs.readFileSync(log, 'utf8').slice(-2000)}`);
}

/** llama.cpp's server, which stays up (and idle) between its runs. */
export async function llamaCpp({ folder, model, contextLength, work, threads }) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const file = path.join(work, 'llama-server.log');
  const log = fs.openSync(file, 'w');
  // ggml skips Vulkan devices that are CPUs unless they are asked for by number.
  const env = { ...lavapipe(), GGML_VK_VISIBLE_DEVICES: '0', LD_LIBRARY_PATH: folder };
  const numbers = { '--port': port, '-ngl': 99, '-c': contextLength, '-np': 1, '-t': threads, '-lv': 4, '-cram': 0 };
  const args = ['-m', model, '--host', '127.0.0.1', ...Object.entries(numbers).flat().map(String)];
  const server = spawn(path.join(folder, 'llama-server'), args, { env, stdio: ['ignore', log, log] });
  await untilHealthy(url, server, file);

  const text = fs.readFileSync(file, 'utf8');
  const adapter = /Vulkan0[^\n]*?\((llvmpipe[^\n]*?\))\)/.exec(text)?.[1];
  const [, offloaded, layers] = /offloaded (\d+)\/(\d+) layers to GPU/.exec(text) ?? [];
  if (!adapter || offloaded !== layers) {
    server.kill();
    throw new Error(`llama.cpp does not compute on lavapipe: ${offloaded} of ${layers} layers, ${adapter}`);
  }

  async function measure({ ids, decodeTokens }) {
    const { timings, tokens } = await post(`${url}/completion`, {
      prompt: ids,
      n_predict: decodeTokens + 1,
      temperature: 0,
      ignore_eos: true,
      cache_prompt: false,
      return_tokens: true,
    });
    const { prompt_n, prompt_ms, predicted_n, predicted_ms } = timings;
    if (prompt_n !== ids.length || predicted_n !== decodeTokens + 1)
      throw new Error(`llama.cpp computed ${prompt_n} and ${predicted_n} tokens`);
    // Its own rate counts the first token, whose time is the prompt's.
    return { prefill: (1000 * prompt_n) / prompt_ms, decode: (1000 * decodeTokens) / predicted_ms, answer: tokens };
  }
  const version = /build[^\n]*?(b?\d+ \([0-9a-f]+\))/.exec(text)?.[1] ?? 'see requirements.txt';
  return { name: 'llama.cpp, Vulkan', version, adapter, kv: 'f16', measure, close: () => server.kill() };
}
