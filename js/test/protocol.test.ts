/** The worker's protocol: who speaks, what is refused, what is handed over, and thousands of messages that nobody should send. */

import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ChannelEvents } from '../src/channel.js';
import { WorkerClient } from '../src/client.js';
import { Engine } from '../src/engine.js';
import type { GrammarModule } from '../src/grammars.js';
import { buffersOf, guardFromWorker, guardToWorker, isResultOf } from '../src/guard.js';
import { type EngineRequest, type FromWorker, PROTOCOL_VERSION, type ToWorker } from '../src/protocol.js';
import { checkTextRequest } from '../src/request.js';
import { VERSION } from '../src/version.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { FakeWorker, fakeEnvironment, fakeModel } from './fake.js';
import { FakeEngine } from './fake-engine.js';

const HELLO = { type: 'hello', protocol: PROTOCOL_VERSION, version: VERSION, life: null };
const LOAD = {
  type: 'load',
  id: 1,
  source: { id: 'fake', parts: [{ kind: 'blob', blob: fakeModel(), name: 'fake.gguf' }], headers: {} },
  options: { kv: 'f16', autotune: false, precision: 'full' },
  store: false,
  group: null,
};
const request = (more: object = {}): EngineRequest => checkTextRequest({ prompt: 'abc', ...more }, []).engineRequest;

/** A function that may be called, and one whose arguments keep to a schema. */
const TOOLS = {
  list: [
    { type: 'function', function: { name: 'a' } },
    { type: 'function', function: { name: 'b', strict: true, parameters: { type: 'object' } } },
  ],
  isRequired: false,
  isParallel: true,
};
/** Requests of other kinds than a plain text. */
const MORE: object[] = [
  { input: { messages: [{ role: 'user', content: 'Hi' }] }, tools: TOOLS, logprobs: 2 },
  { input: { messages: [{ role: 'tool', content: '1', tool_call_id: 'x' }] }, numChoices: 2 },
  { embeds: true, cache: { ...request().cache, enabled: false } },
];
const POLICY = { kind: 'tail_aware', ttftTargetMs: 200, prefillTokensPerS: 100, nextTurnTokens: 50 };
const SCHEMA = { name: 'a', json: '{}', field: 'response_format' };
const submitOf = (constraint: unknown, id = 5): object => {
  return { type: 'submit', id, request: { ...request(), constraint }, name: 'x' };
};

const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);

beforeEach(() => process.on('unhandledRejection', note));
afterEach(() => {
  process.off('unhandledRejection', note);
  expect(unhandled.splice(0)).toEqual([]);
});

/** A loop without a page: messages in, messages out. */
class RawWorker {
  readonly posted: FromWorker[] = [];
  readonly engine = new FakeEngine({});
  /** What compiles constraints takes its time. */
  readonly loadGrammars = () =>
    new Promise<GrammarModule>((resolve) => setTimeout(() => resolve({ createGrammars: null }), 10));
  readonly loop = new WorkerLoop(fakeEnvironment({ loadGrammars: this.loadGrammars }, this.engine));
  readonly send = this.loop.connect((message) => this.posted.push(message), { isOwner: true });

  constructor() {
    void this.loop.run();
  }

  /** The answer to a call. */
  async answer(message: unknown, id: unknown): Promise<FromWorker> {
    this.send(message);
    const isAnswer = (posted: FromWorker): boolean =>
      (posted.type === 'result' || posted.type === 'error') && posted.id === id;
    return vi.waitFor(() => {
      const found = this.posted.find(isAnswer);
      if (found === undefined) throw new Error(`no answer to ${JSON.stringify(message)}`);
      return found;
    });
  }
}

/** A client of which the worker is played by hand. */
function byHand(): { client: WorkerClient; sent: ToWorker[]; tell: (message: unknown) => void } {
  const sent: ToWorker[] = [];
  let events: ChannelEvents | undefined;
  const client = new WorkerClient((given) => {
    events = given;
    return { post: (message) => void sent.push(message), end: () => undefined };
  });
  return { client, sent, tell: (message) => events?.onMessage(message) };
}

describe('versions', () => {
  test('the package’s is that of package.json', () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(VERSION).toBe(version);
  });

  test.each([
    ['of another version', { ...HELLO, version: '0.0.9' }],
    ['of another protocol', { ...HELLO, protocol: 1 }],
    ['that does not say', { type: 'result', id: 1, value: null }],
  ])('a worker %s is an error that says what to do', async (_, first) => {
    const { client, tell } = byHand();
    const call = client.call('metrics', {});
    tell(first);
    await expect(call).rejects.toMatchObject({
      code: 'version_mismatch',
      message: expect.stringContaining('Reload the page'),
    });
    expect(client.closed).toMatchObject({ code: 'version_mismatch' });
  });

  test.each([undefined, { ...HELLO, version: '9.9.9' }])(
    'a page that says %j gets no answers but that',
    async (hello) => {
      const worker = new RawWorker();
      if (hello !== undefined) worker.send(hello);
      expect(await worker.answer(LOAD, 1)).toMatchObject({ type: 'error', error: { code: 'version_mismatch' } });
      worker.send({ type: 'cancel', request: 1 });
      expect(worker.loop.numIgnored).toBe(1);
      // Once it does, all is well.
      worker.send(HELLO);
      expect(await worker.answer({ ...LOAD, id: 2 }, 2)).toMatchObject({ type: 'result', value: { id: 'fake' } });
    },
  );
});

describe('the worker', () => {
  test.each([
    [{ type: 'nonsense', id: 5 }, 'unknown message "nonsense"'],
    [{ type: 'toString', id: 5 }, 'unknown message "toString"'],
    [{ id: 5 }, 'without a type'],
    [{ type: 'tokenize', id: 5 }, 'tokenize: text'],
    [{ type: 'tokenize', id: 5, text: 3, addSpecial: false, parseSpecial: false }, 'tokenize: text'],
    [{ type: 'detokenize', id: 5, ids: [1, -1], skipSpecial: false }, 'detokenize: ids'],
    [{ type: 'detokenize', id: 5, ids: new Array(2), skipSpecial: false }, 'detokenize: ids'],
    [{ type: 'submit', id: 5, request: { ...request(), numChoices: 0 }, name: 'x' }, 'submit: request'],
    [{ type: 'submit', id: 5, request: { ...request(), input: { text: 3 } }, name: 'x' }, 'submit: request'],
    [submitOf({ kind: 'regex' }), 'submit: request'],
    [submitOf({ kind: 'xml', pattern: 'a', field: 'regex' }), 'submit: request'],
    [submitOf({ kind: 'lark', grammar: 'start: "a"', schemas: [{}], field: 'grammar' }), 'submit: request'],
    [submitOf({ kind: 'json_schema', ...SCHEMA, json: {} }), 'submit: request'],
    [submitOf(null), 'submit: request'],
    [{ type: 'cacheExplain', id: 5, request: { ...request(), constraint: 'a+' } }, 'cacheExplain: request'],
    [
      { type: 'submit', id: 5, request: { ...request(), tools: { ...TOOLS, list: [{}] } }, name: 'x' },
      'submit: request',
    ],
    [{ type: 'submit', id: 5, request: { ...request(), logprobs: -1 }, name: 'x' }, 'submit: request'],
    [{ type: 'cachePolicy', id: 5 }, 'cachePolicy: policy'],
    [{ type: 'cachePolicy', id: 5, policy: { kind: 'fifo' } }, 'cachePolicy: policy'],
    [{ type: 'cachePolicy', id: 5, policy: { ...POLICY, nextTurnTokens: -1 } }, 'cachePolicy: policy'],
    [{ type: 'load', id: 5, source: {}, options: {}, store: false, group: null }, 'load: source'],
    [{ type: 'cacheRestore', id: 5, cache: request().cache }, 'cacheRestore: data'],
  ])('answers %j with an error', async (message, text) => {
    const worker = new RawWorker();
    worker.send(HELLO);
    const error = { code: 'bad_request', message: expect.stringContaining(text) };
    expect(await worker.answer(message, 5)).toMatchObject({ type: 'error', error });
    expect(worker.loop.numIgnored).toBe(0);
  });

  test.each([
    submitOf({ kind: 'regex', pattern: 'a+', field: 'regex' }),
    submitOf({ kind: 'lark', grammar: 'start: @a', schemas: [SCHEMA], field: 'grammar' }),
    submitOf({ kind: 'json_schema', ...SCHEMA }),
    { type: 'cachePolicy', id: 5, policy: { kind: 'lru' } },
    { type: 'cachePolicy', id: 5, policy: POLICY },
  ])('takes %j', async (message) => {
    const worker = new RawWorker();
    worker.send(HELLO);
    await worker.answer(LOAD, 1);
    const answer = await worker.answer(message, 5);
    expect(answer).toMatchObject({ type: 'result' });
    const { type } = message as { type: 'submit' | 'cachePolicy' };
    expect(isResultOf(type, (answer as { value: unknown }).value)).toBe(true);
    expect(isResultOf(type, 3)).toBe(false);
  });

  test.each([
    null,
    undefined,
    7,
    'hello',
    [],
    new Map(),
    { type: 'nonsense' },
    { type: 'tokenize', id: -1, text: 'a', addSpecial: false, parseSpecial: false },
    { type: 'cancel', request: 'one' },
    { type: 'stepTarget', ms: Number.NaN },
    { type: 'connect' },
    { type: 'connect', via: { port: 1 } },
    { ...HELLO, life: 3 },
  ])('ignores and counts %j', async (message) => {
    const worker = new RawWorker();
    worker.send(HELLO);
    worker.send(message);
    expect(worker.loop.numIgnored).toBe(1);
    expect(await worker.answer(LOAD, 1)).toMatchObject({ type: 'result' });
  });

  test('answers a request twice under one id once, and cancels of what is unknown do nothing', async () => {
    const worker = new RawWorker();
    worker.send(HELLO);
    await worker.answer(LOAD, 1);
    for (const id of [0, 2, 77]) worker.send({ type: 'cancel', request: id });
    const submit = { type: 'submit', id: 2, request: request({ n: 2 }), name: 'x' };
    worker.send(submit);
    worker.send(submit);
    const isOver = (): boolean => worker.posted.filter((message) => 'id' in message && message.id === 2).length === 2;
    await vi.waitFor(() => expect([isOver(), worker.engine.running.size]).toEqual([true, 0]));
    const answers = worker.posted.filter((message) => 'id' in message && message.id === 2);
    expect(answers).toMatchObject([{ type: 'result' }, { type: 'error', error: { code: 'bad_request' } }]);
    const events = worker.posted.flatMap((message) => (message.type === 'events' ? message.events : []));
    expect(events.filter(({ kind }) => kind === 'finished')).toHaveLength(2);
    expect(events.every((event) => event.request === 2)).toBe(true);
    expect(worker.engine.cancelled).toEqual([]);
    // Its id is free again.
    expect(await worker.answer({ ...submit, id: 3 }, 3)).toMatchObject({ type: 'result' });
  });

  test('answers what came before it ran', async () => {
    const engine = new FakeEngine({});
    const posted: FromWorker[] = [];
    const loop = new WorkerLoop(fakeEnvironment({}, engine));
    const send = loop.connect((message) => posted.push(message));
    for (const message of [HELLO, LOAD, { type: 'metrics', id: 2 }]) send(message);
    await new Promise((resolve) => setTimeout(resolve, 5));
    void loop.run();
    await vi.waitFor(() => expect(posted.filter(({ type }) => type === 'result')).toHaveLength(2));
  });

  test('waits for no frame: a hidden page has none', () => {
    const folder = new URL('../src/', import.meta.url);
    const sources = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'));
    expect(sources.filter((text) => /requestAnimationFrame|requestIdleCallback/.test(text))).toEqual([]);
  });

  test('answers pings while the GPU works, and calls after unload', async () => {
    const worker = new RawWorker();
    worker.send(HELLO);
    await worker.answer(LOAD, 1);
    worker.engine.logits = () => new Promise(() => undefined);
    worker.send({ type: 'logits', id: 2, ids: [1], positions: [0] });
    await new Promise((resolve) => setTimeout(resolve, 5));
    worker.send({ type: 'ping' });
    expect(worker.posted.at(-1)).toEqual({ type: 'pong' });
    const other = new RawWorker();
    other.send(HELLO);
    await other.answer(LOAD, 1);
    await other.answer({ type: 'unload', id: 2 }, 2);
    expect(await other.answer({ type: 'metrics', id: 3 }, 3)).toMatchObject({ error: { code: 'bad_request' } });
    expect(await other.answer({ ...LOAD, id: 4 }, 4)).toMatchObject({ type: 'result' });
  });
});

describe('the page', () => {
  test('refuses a malformed answer, and counts what is about nothing', async () => {
    const { client, sent, tell } = byHand();
    tell(HELLO);
    const calls = [
      client.call('tokenize', { text: 'a', addSpecial: false, parseSpecial: false }),
      client.call('metrics', {}),
    ];
    const ids = sent.flatMap((message) => ('id' in message ? [message.id] : []));
    tell({ type: 'result', id: ids[0], value: ['a'] });
    await expect(calls[0]).rejects.toMatchObject({
      code: 'worker_crashed',
      message: expect.stringContaining('tokenize'),
    });
    for (const junk of [
      null,
      3,
      {},
      { type: 'x' },
      { type: 'result', id: 99, value: 1 },
      { type: 'error', id: 99, error: {} },
    ]) {
      tell(junk);
    }
    expect(client.numIgnored).toBe(6);
    tell({ type: 'error', id: ids[1], error: { code: 'no such code', message: 'x' } });
    await expect(calls[1]).rejects.toMatchObject({ code: 'worker_crashed' });
    expect(client.isWaiting).toBe(false);
  });

  test('fails a request with a malformed event, and tells the worker', async () => {
    const { client, sent, tell } = byHand();
    tell(HELLO);
    const generating = client.generate(request(), undefined);
    const id = (sent.at(-1) as { id: number }).id;
    tell({ type: 'result', id, value: { promptTokens: 3 } });
    const generation = await generating;
    tell({
      type: 'events',
      events: [null, { kind: 'text', request: 99, choice: 0, text: 'x' }, { kind: 'text', request: id }],
    });
    await expect(generation.next()).rejects.toMatchObject({ code: 'worker_crashed' });
    expect(sent.at(-1)).toEqual({ type: 'cancel', request: id });
  });
});

describe('big buffers are handed over', () => {
  test('logits from the worker', async () => {
    const worker = new FakeWorker();
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const rows = [Float32Array.of(1, 2), Float32Array.of(3)];
    worker.engine.logits = async () => rows;
    expect(await engine.logits([1, 2], { positions: [0, 1] })).toEqual([Float32Array.of(1, 2), Float32Array.of(3)]);
    expect(rows.map(({ byteLength }) => byteLength)).toEqual([0, 0]);
    expect(worker.transferred).toHaveLength(2);
  });

  test('a saved prefix to the worker, if the caller gives it away', async () => {
    const worker = new FakeWorker();
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const given = Uint8Array.of(1, 2, 3);
    expect(await engine.cache.restore(given, { transfer: true })).toEqual({ tokens: 32, blocks: 2 });
    expect(given.byteLength).toBe(0);
    const kept = Uint8Array.of(1, 2, 3);
    await engine.cache.restore(kept);
    expect(kept.byteLength).toBe(3);
    const part = new Uint8Array(new ArrayBuffer(8), 2, 3).fill(1);
    await engine.cache.restore(part, { transfer: true });
    // Only whole buffers are given away: the rest of this one is somebody else's.
    expect(part.byteLength).toBe(3);
    const calls = worker.engine.cacheCalls.filter(([name]) => name === 'restore').map(([, bytes]) => bytes);
    expect(calls).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 1, 1],
    ]);
  });

  test('a detached buffer is refused, and the engine goes on', async () => {
    const worker = new FakeWorker();
    const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
    const data = Uint8Array.of(1, 2);
    structuredClone(data, { transfer: [data.buffer] });
    await expect(engine.cache.restore(data, { transfer: true })).rejects.toMatchObject({ code: 'bad_request' });
    expect(await engine.tokenize('a')).toEqual([97]);
  });

  test('a saved prefix from the worker is a Blob, which is never copied; ranges of WebAssembly memory are not given away', async () => {
    const engine = await Engine.load(fakeModel(), { createWorker: () => new FakeWorker().asWorker });
    expect(await engine.cache.save([5])).toBeInstanceOf(Blob);
    const memory = new WebAssembly.Memory({ initial: 1 });
    expect(buffersOf([new Float32Array(memory.buffer, 16, 4)])).toEqual([]);
    const [a, b] = [new Float32Array(4), new Uint8Array(3)];
    expect(buffersOf({ embeddings: a, again: a, bytes: b.buffer, name: 'x' })).toEqual([a.buffer, b.buffer]);
  });
});

/** Mulberry32: a sequence of numbers from 0 to 1 that a seed decides. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes messages that nobody should send of ones that somebody has sent. */
class Mutator {
  readonly #random: () => number;
  readonly #seen: unknown[] = [];

  constructor(seed: number) {
    this.#random = random(seed);
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  /** True so often, from 0 to 1. */
  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** A message that came before, or one of those changed somewhere. */
  next(message: unknown): unknown {
    this.#seen.push(message);
    const old = this.pick(this.#seen.slice(-30));
    return this.chance(0.3) ? old : this.#change(old, 0);
  }

  #junk(): unknown {
    const buffer = new ArrayBuffer(4);
    structuredClone(buffer, { transfer: [buffer] });
    return this.pick<unknown>([null, undefined, -1, 1.5, 2 ** 60, '', 'x', [], {}, [null], true, buffer, Number.NaN]);
  }

  #change(value: unknown, depth: number): unknown {
    if (typeof value !== 'object' || value === null || value instanceof Blob || depth > 3) return this.#junk();
    const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...value };
    const keys = Object.keys(copy);
    const key = this.pick(keys);
    if (key === undefined || this.chance(0.1)) return this.#junk();
    if (this.chance(0.2)) delete copy[key];
    else copy[key] = this.chance(0.5) ? this.#change(copy[key], depth + 1) : this.#junk();
    return copy;
  }
}

/** What ends the worker, or takes its model away: the fuzzer says these itself. */
const isFinal = (message: unknown): boolean =>
  ['unload', 'leave', 'crashed'].includes((message as { type?: string })?.type ?? '');

/** A worker that gets, and sends, more than it should; all that is right comes as well, and in order. */
class NoisyWorker extends FakeWorker {
  readonly #mutator: Mutator;
  #handler: ((event: { data: FromWorker }) => void) | null = null;
  numInjected = 0;

  constructor(seed: number) {
    super();
    this.#mutator = new Mutator(seed);
    const original = this.postMessage.bind(this);
    this.postMessage = (message, transfer) => {
      original(message, transfer);
      this.#inject(message, (junk) => ifSendable(junk, () => original(junk as ToWorker)));
    };
    Object.defineProperty(this, 'onmessage', {
      get: () => (event: { data: FromWorker }) => {
        this.#handler?.(event);
        this.#inject(event.data, (junk) => this.#handler?.({ data: junk as FromWorker }));
      },
      set: (handler) => {
        this.#handler = handler;
      },
    });
  }

  #inject(message: unknown, send: (junk: unknown) => void): void {
    while (this.#mutator.chance(0.5)) {
      const junk = aboutNothing(this.#mutator.next(message));
      // What would be right, for something else than was asked, is no noise but another answer.
      const isAnswer = ['result', 'error', 'events', 'hello'].includes((junk as { type?: string } | null)?.type ?? '');
      if (isFinal(junk) || (isAnswer && 'message' in guardFromWorker(junk)) || isReload(junk)) continue;
      this.numInjected += 1;
      send(junk);
    }
  }
}

/** The same about other calls and requests than there are: what is about them is theirs, noise or not. */
function aboutNothing(junk: unknown): unknown {
  if (typeof junk !== 'object' || junk === null || Array.isArray(junk)) return junk;
  const { id, request, events } = junk as { id?: unknown; request?: unknown; events?: unknown };
  const shift = (value: unknown): unknown => (typeof value === 'number' ? value + 1e6 : value);
  return {
    ...junk,
    ...(id === undefined ? {} : { id: shift(id) }),
    ...(request === undefined ? {} : { request: shift(request) }),
    ...(Array.isArray(events) ? { events: events.map(aboutNothing) } : {}),
  };
}

/** Some junk cannot even be sent. */
function ifSendable(junk: unknown, send: () => void): void {
  try {
    structuredClone(junk);
  } catch {
    return;
  }
  send();
}

const isReload = (junk: unknown): boolean => ['hello', 'load'].includes((junk as { type?: string } | null)?.type ?? '');

describe('noise', () => {
  test.each(Array.from({ length: 25 }, (_, i) => i + 1))(
    'around right messages changes nothing (seed %i)',
    async (seed) => {
      const worker = new NoisyWorker(seed);
      const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
      const { pick, chance } = ((m) => ({ pick: m.pick.bind(m), chance: m.chance.bind(m) }))(new Mutator(1000 + seed));
      const calls: (() => Promise<unknown>)[] = [
        () => engine.tokenize('ab').then((ids) => expect(ids).toEqual([97, 98])),
        () => engine.detokenize([97]).then((text) => expect(text).toBe('a')),
        () => engine.metrics(),
        () => engine.logits([1, 2]).then((rows) => expect(rows).toEqual([Float32Array.of(1, 2)])),
        () => engine.cache.setPolicy({ kind: 'lru' }),
        () => engine.completions.create({ prompt: 'x', regex: 'a+' }),
        () => engine.cache.pin([1]).then((tokens) => expect(tokens).toBe(16)),
        () => engine.cache.restore(Uint8Array.of(1, 2), { transfer: chance(0.5) }),
        () =>
          engine.completions
            .create({ prompt: 'x', n: pick([1, 2]) })
            .then(({ choices }) => expect(choices[0]?.text).toBe('Hello')),
        async () => {
          const controller = new AbortController();
          const answer = engine.completions.create({ prompt: 'x' }, { signal: controller.signal });
          setTimeout(() => controller.abort(), pick([0, 2, 5]));
          await answer.catch(({ code }) => expect(code).toBe('cancelled'));
        },
      ];
      const work: Promise<unknown>[] = [];
      for (let i = 0; i < 20; i++) {
        work.push(pick(calls)());
        if (chance(0.3)) await new Promise((resolve) => setTimeout(resolve, pick([0, 1, 3])));
      }
      await Promise.all(work);
      expect(worker.numInjected).toBeGreaterThan(10);
      expect(engine.ended).toBeNull();
      const { choices } = await engine.completions.create({ prompt: 'still there' });
      expect(choices[0]?.text).toBe('Hello');
      await engine.unload();
    },
  );

  test.each(Array.from({ length: 25 }, (_, i) => i + 1))(
    'in place of right messages hangs nothing for good (seed %i)',
    async (seed) => {
      const mutator = new Mutator(5000 + seed);
      const worker = new FakeWorker();
      const post = worker.postMessage.bind(worker);
      const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker });
      worker.postMessage = (message, transfer) => {
        const sent = mutator.chance(0.3) ? mutator.next(message) : message;
        if (sent === message) post(message, transfer);
        else if (!isFinal(sent) && !isReload(sent)) ifSendable(sent, () => post(sent as ToWorker));
      };
      const work: Promise<unknown>[] = [];
      for (let i = 0; i < 20; i++) {
        const controller = new AbortController();
        work.push(
          mutator.pick([
            () => engine.tokenize('ab'),
            () => engine.cache.stats(),
            () => engine.cache.setPolicy({ kind: 'lru' }),
            () => engine.completions.create({ prompt: 'x', regex: 'a+' }, { signal: controller.signal }),
            () => engine.cache.restore(Uint8Array.of(1), { transfer: true }),
            () => engine.completions.create({ prompt: 'x' }, { signal: controller.signal }),
          ])(),
        );
        if (mutator.chance(0.3)) controller.abort();
      }
      const settled = Promise.allSettled(work);
      await new Promise((resolve) => setTimeout(resolve, 30));
      // The worker is not beyond use, whatever it was told.
      worker.postMessage = post;
      expect(await engine.tokenize('a')).toEqual([97]);
      expect((await engine.completions.create({ prompt: 'x' })).choices[0]?.text).toBe('Hello');
      await engine.unload();
      expect(await settled).toHaveLength(20);
    },
  );

  test.each(Array.from({ length: 25 }, (_, i) => i + 1))(
    'of messages in any order is answered or ignored (seed %i)',
    async (seed) => {
      const worker = new RawWorker();
      const mutator = new Mutator(9000 + seed);
      const right: object[] = [
        HELLO,
        LOAD,
        { type: 'submit', request: request(), name: 'x' },
        submitOf({ kind: 'regex', pattern: 'a+', field: 'regex' }),
        ...MORE.map((more) => ({ type: 'submit', request: { ...request(), ...more }, name: 'x' })),
        { type: 'cachePolicy', policy: POLICY },
        { type: 'tokenize', text: 'a', addSpecial: false, parseSpecial: false },
        { type: 'cacheRestore', data: new ArrayBuffer(4), cache: request().cache },
        { type: 'cacheListen', isOn: true },
        { type: 'stepListen', isOn: true },
        { type: 'cancel', request: 3 },
        { type: 'stepTarget', ms: 5 },
        { type: 'ping' },
        { type: 'unload' },
        { type: 'metrics' },
      ];
      const ids: number[] = [];
      for (let id = 1; id <= 120; id++) {
        const message = { ...mutator.pick(right), id };
        const sent = mutator.chance(0.5) ? message : mutator.next(message);
        const guarded = guardToWorker(sent);
        const known = 'message' in guarded ? ('id' in guarded.message ? guarded.message.id : undefined) : guarded.id;
        const type = (sent as { type?: string } | null)?.type;
        if (known !== undefined && !['hello', 'cancel', 'stepTarget', 'ping'].includes(type ?? '')) ids.push(known);
        worker.send(sent);
        if (mutator.chance(0.2)) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const numAnswers = (): number => worker.posted.filter(({ type }) => type === 'result' || type === 'error').length;
      await vi.waitFor(() => expect(numAnswers()).toBeGreaterThanOrEqual(ids.length));
      expect(worker.posted.filter(({ type }) => type === 'crashed')).toEqual([]);
      worker.send(HELLO);
      await worker.answer({ type: 'unload', id: 1001 }, 1001);
      await worker.answer({ ...LOAD, id: 1002 }, 1002);
      expect(await worker.answer({ type: 'submit', id: 1003, request: request(), name: 'x' }, 1003)).toMatchObject({
        type: 'result',
      });
    },
  );
});
