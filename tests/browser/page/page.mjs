// The npm package as a plain module page gets it: no bundler, under the strict policy.
import { Engine, explainMiss, kvMemory, simulate } from '/js/dist/index.js';

let engine;

/** Loads a model in place of the one before; answers what is known of it. */
async function load(url, options) {
  await engine?.unload();
  engine = await Engine.load(url, within(options));
  return engine.info;
}

/** Of each position: the logits of the wanted ids, and the best id. */
async function logits(ids, rows) {
  const found = await engine.logits(ids, { positions: rows.map(({ position }) => position) });
  return found.map((row, index) => ({
    wanted: rows[index].ids.map((id) => row[id]),
    best: row.indexOf(row.reduce((a, b) => Math.max(a, b))),
  }));
}

/** WebAssembly memory never shrinks, so what there is now is the most there ever was. */
const metrics = () => engine.metrics();

/** A whole answer: its text, what it cost, and what the cache did. */
async function chat(request) {
  const { choices, usage, cache } = await engine.chat.completions.create({ temperature: 0, ...request });
  return { text: choices[0].message.content, usage, cache };
}

const events = [];

/** Calls a method of `engine.cache`. */
const cache = (method, ...args) => engine.cache[method](...args);

/** From now on, what happens in the cache is kept for `events`. */
const listen = () => void engine.cache.onEvent((event) => events.push(event));

/** Keeps what is cached of a prefix over reloads; answers its size. */
async function saveTo(name, prefix) {
  const blob = await engine.cache.save(prefix);
  const folder = await navigator.storage.getDirectory();
  const file = await folder.getFileHandle(name, { create: true });
  const writable = await file.createWritable();
  await writable.write(blob);
  await writable.close();
  return blob.size;
}

/** Brings it back, as it is or with one bit of it flipped. */
async function restoreFrom(name, { flipAt, ...options } = {}) {
  const folder = await navigator.storage.getDirectory();
  const file = await folder.getFileHandle(name);
  let data = await file.getFile();
  if (flipAt !== undefined) {
    data = new Uint8Array(await data.arrayBuffer());
    data[flipAt] ^= 1;
  }
  return engine.cache.restore(data, options);
}

/** Options as they are, or with a worker in a browser that has no file system, or without shared workers. */
const within = ({ withoutFiles, withoutSharedWorkers, ...options } = {}) => {
  if (withoutFiles) options.createWorker = () => new Worker('/test/idb-worker.mjs', { type: 'module' });
  if (withoutSharedWorkers) {
    options.share.createSharedWorker = () => {
      throw new Error('there are none');
    };
  }
  return options;
};

/** Calls a method of `Engine.models`. */
const models = (method, source, options) =>
  method === 'list' ? Engine.models.list(within(source)) : Engine.models[method](source, within(options));

globalThis.test = {
  cache,
  chat,
  /** For code that a test runs in the page. */
  engine: () => engine,
  events,
  listen,
  explainMiss,
  kvMemory,
  load,
  logits,
  metrics,
  models,
  restoreFrom,
  saveTo,
  simulate,
  unload: () => engine.unload(),
};
