/** Time limits of requests that outlive the tab that had the engine. */

import { expect, test } from 'vitest';
import type { EngineRequest } from '../src/protocol.js';
import type { WasmModule } from '../src/wasm.js';
import { FakeBrowser, type FakeTab, until } from './fake-tabs.js';
import { messages, two, watchRejections } from './sharing-setup.js';

watchRejections();

/** The requests that a tab's own worker got. */
const submitted = (tab: FakeTab): EngineRequest[] =>
  (tab.workers[0]?.received ?? []).flatMap((message) => (message.type === 'submit' ? [message.request] : []));

test('a request that goes to the next leader keeps the time that it has left', async () => {
  const [, a, b, , second] = await two({ prefillSteps: 1e6 });
  const limits = { deadline_ms: 6e6, timeout_ms: { total: 5e6, queue: 4e6 } };
  const controller = new AbortController();
  const answers = [limits, { deadline_ms: 1e9 }, {}].map((more) =>
    second.chat.completions.create({ messages, ...more }, { signal: controller.signal }),
  );
  const made = performance.now();
  const { engine } = a.workers[0] as FakeTab['workers'][0];
  await until(() => engine.running.size === 3);
  await new Promise((resolve) => setTimeout(resolve, 30));
  const passedMs = performance.now() - made;
  a.kill();
  await until(() => submitted(b).length === 3);
  const [first, long, none] = submitted(b);
  expect(first?.deadlineMs).toBeLessThanOrEqual(6e6 - passedMs);
  expect(first?.totalTimeoutMs).toBeLessThanOrEqual(5e6 - passedMs);
  // How long it may wait begins anew: it waits again.
  expect(first?.queueTimeoutMs).toBe(4e6);
  expect(long?.deadlineMs).toBeLessThanOrEqual(1e9 - passedMs);
  expect(none).not.toHaveProperty('deadlineMs');
  controller.abort();
  expect((await Promise.allSettled(answers)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
});

test('a request whose time is over while there is no engine fails then, and is not sent any more', async () => {
  const browser = new FakeBrowser({ prefillSteps: 1e6 });
  let isHeld = true;
  const loadEngine: WasmModule['loadEngine'] = async (...args) => {
    await until(() => !isHeld);
    return (b.workers[0] as FakeTab['workers'][0]).engine.module().loadEngine(...args);
  };
  const [a, b] = [browser.open(), browser.open({ module: { loadEngine } })];
  await a.load();
  const second = await b.load();
  const answer = second.chat.completions.create({ messages, deadline_ms: 800 });
  const stream = await second.chat.completions.create({ messages, stream: true, timeout_ms: 800 });
  a.kill();
  const late = { code: 'deadline_exceeded' };
  await expect(answer).rejects.toMatchObject({ ...late, message: expect.stringContaining('deadline_ms of 800 ms') });
  const iterator = stream[Symbol.asyncIterator]();
  // The first chunk says who speaks.
  await iterator.next();
  await expect(iterator.next()).rejects.toMatchObject({
    ...late,
    message: expect.stringContaining('timeout_ms.total'),
  });
  // One that is made while there is none, too.
  await expect(second.completions.create({ prompt: 'a', deadline_ms: 20 })).rejects.toMatchObject(late);
  isHeld = false;
  await until(() => second.sharing?.isReady);
  expect(b.workers[0]?.engine.running.size).toBe(0);
});
