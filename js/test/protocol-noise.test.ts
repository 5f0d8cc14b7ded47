/** Thousands of messages that nobody should send. */

import { describe, expect, test, vi } from 'vitest';
import { Engine } from '../src/engine.js';
import { guardToWorker } from '../src/guard.js';
import type { ToWorker } from '../src/protocol.js';
import type { ChatTool } from '../src/types.js';
import { FakeWorker, fakeModel } from './fake.js';
import { ifSendable, isFinal, isReload, Mutator, NoisyWorker } from './noise.js';
import { HELLO, LOAD, POLICY, RawWorker, request, submitOf, TOOLS, watchRejections } from './protocol-setup.js';

watchRejections();

const HI = [{ role: 'user', content: 'Hi' }] as const;
/** A conversation with functions that the template tells of. */
const TOLD = { messages: [{ role: 'user', content: 'Hi' }], tools: TOOLS.list };
/** Requests of other kinds than a plain text. */
const MORE: object[] = [
  { input: { messages: [{ role: 'user', content: 'Hi' }] }, tools: TOOLS, logprobs: 2 },
  { input: { messages: [{ role: 'tool', content: '1', tool_call_id: 'x' }] }, numChoices: 2 },
  { embeds: true, cache: { ...request().cache, enabled: false } },
];
/** The same kinds as a page asks for them. */
const moreCalls = (engine: Engine): (() => Promise<unknown>)[] => [
  () =>
    engine.chat.completions.create({
      messages: HI,
      tools: TOLD.tools as ChatTool[],
      response_format: { type: 'json_object' },
      logprobs: true,
      top_logprobs: 2,
    }),
  () =>
    engine.chat.completions.create({
      messages: [
        { role: 'assistant', tool_calls: [{ id: 'x', type: 'function', function: { name: 'a', arguments: '{}' } }] },
        { role: 'tool', content: '1', tool_call_id: 'x' },
      ],
      n: 2,
    }),
  () => engine.embeddings.create({ input: 'a' }),
];

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
        ...moreCalls(engine),
        () => engine.cache.pin([1]).then((tokens) => expect(tokens).toBe(16)),
        () => engine.cache.save(HI, { tools: TOLD.tools as ChatTool[] }),
        () => engine.applyTemplate(HI, { tools: TOLD.tools as ChatTool[] }),
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
            ...moreCalls(engine),
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
        ...['cachePin', 'cacheUnpin', 'cacheEvict'].map((type) => ({ type, prefix: TOLD, salt: '' })),
        { type: 'applyTemplate', ...TOLD, addGenerationPrompt: true },
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
