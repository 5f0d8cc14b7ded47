import { describe, expect, test, vi } from 'vitest';
import { FakeBrowser, type FakeTab, until } from './fake-tabs.js';
import { ask, begun, end, LONG, messages, two, watchRejections } from './sharing-setup.js';

watchRejections();

const forever = (): Promise<never> => new Promise(() => undefined);

describe.each(['none', 'broker'] as const)('tabs of which one has the engine (shared workers: %s)', (sharedWorkers) => {
  test('load one model, and all use it', async () => {
    const [browser, a, b, first, second] = await two({ sharedWorkers });
    expect(first.sharing).toMatchObject({ role: 'leader', owner: 'tab', isReady: true });
    expect(second.sharing).toMatchObject({ role: 'follower', owner: 'tab', isReady: true });
    await until(() => first.sharing?.tabs === 2 && second.sharing?.tabs === 2);
    expect(await Promise.all([ask(first), ask(second)])).toEqual(['Hello', 'Hello']);
    expect(second.info).toEqual(first.info);
    expect(await second.tokenize('ab')).toEqual([97, 98]);
    expect(await second.cache.pin(messages)).toBe(16);
    expect(await second.logits([7, 8])).toEqual([Float32Array.of(1, 8)]);
    expect([...new Uint8Array(await (await second.cache.save(messages)).arrayBuffer())]).toEqual([1, 2, 3]);
    expect((await second.metrics()).numSteps).toBeGreaterThan(0);
    expect([browser.numLoads, a.workers.length, b.workers.length]).toEqual([1, 1, 0]);
  });

  test('that load at the same time load once', async () => {
    const browser = new FakeBrowser({ sharedWorkers });
    const engines = await Promise.all([1, 2, 3].map(() => browser.open().load()));
    expect(engines.map((engine) => engine.sharing?.role).sort()).toEqual(['follower', 'follower', 'leader']);
    expect(await Promise.all(engines.map(ask))).toEqual(['Hello', 'Hello', 'Hello']);
    expect(browser.numLoads).toBe(1);
  });

  test('hand over when the leader dies: streams fail, all else waits', async () => {
    const [browser, a, b, , second] = await two({ sharedWorkers, answer: LONG });
    const third = await browser.open().load();
    const changes = vi.fn();
    second.onLeaderChange(changes);
    const iterator = await begun(second);
    a.kill();
    const waiting = [second.tokenize('ab'), third.detokenize([97]), third.metrics()];
    expect(await end(iterator)).toMatchObject({ code: 'leader_lost', retriable: true });
    expect((await Promise.all(waiting)).slice(0, 2)).toEqual([[97, 98], 'a']);
    expect([await ask(second), await ask(third)]).toEqual([LONG, LONG]);
    expect(second.sharing).toMatchObject({ role: 'leader', tabs: 2 });
    expect(third.sharing).toMatchObject({ role: 'follower', tabs: 2 });
    expect(changes.mock.calls.map(([sharing]) => sharing.role)).toEqual(['leader']);
    expect([browser.numLoads, b.workers.length]).toEqual([2, 1]);
  });

  test('requests of which nothing has come yet go to the next leader by themselves', async () => {
    const [, a, , , second] = await two({ sharedWorkers, prefillSteps: 30 });
    const answer = ask(second);
    await new Promise((resolve) => setTimeout(resolve, 10));
    a.kill();
    expect(await answer).toBe('Hello');
  });

  test('take over from a leader that is frozen, which follows when it is back', async () => {
    const [, a, , first, second] = await two({ sharedWorkers, answer: LONG });
    const [own, other] = [await begun(first), await begun(second)];
    a.freeze();
    expect(await end(other)).toMatchObject({ code: 'leader_lost' });
    expect(await ask(second)).toBe(LONG);
    expect(second.sharing?.role).toBe('leader');
    // Its lock is gone.
    expect(await end(own)).toMatchObject({ code: 'leader_lost' });
    expect(await ask(first)).toBe(LONG);
    expect(first.sharing?.role).toBe('follower');
  });

  test('one that is quiet but answers is not frozen', async () => {
    let answer: (rows: Float32Array[]) => void = () => undefined;
    const logits = (): Promise<Float32Array[]> =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const [, , , first, second] = await two({ sharedWorkers, engine: { logits } });
    const waiting = second.logits([1]);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(first.sharing?.role).toBe('leader');
    answer([Float32Array.of(5)]);
    expect(await waiting).toEqual([Float32Array.of(5)]);
  });

  test('a follower that dies leaves nothing behind', async () => {
    const [browser, a, b, first, second] = await two({ sharedWorkers, answer: LONG });
    void end(await begun(second));
    b.kill();
    const { engine } = a.workers[0] as FakeTab['workers'][0];
    await until(() => engine.running.size === 0);
    expect(engine.cancelled).toHaveLength(1);
    await until(() => first.sharing?.tabs === 1);
    expect(browser.locks.names.filter((name) => name.includes('-tab-'))).toHaveLength(1);
  });

  test('aborts cross tabs', async () => {
    const [, a, , , second] = await two({ sharedWorkers, prefillSteps: 100_000 });
    const controller = new AbortController();
    const answer = second.chat.completions.create({ messages }, { signal: controller.signal });
    const { engine } = a.workers[0] as FakeTab['workers'][0];
    await until(() => engine.running.size === 1);
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => engine.running.size === 0);
  });

  test('unload leaves: of the leader it hands over, of the last one it frees', async () => {
    const [browser, a, b, first, second] = await two({ sharedWorkers, answer: LONG });
    const iterator = await begun(second);
    await first.unload();
    expect(a.workers[0]).toMatchObject({ isTerminated: true, engine: { isFree: true } });
    await expect(first.tokenize('a')).rejects.toMatchObject({ code: 'cancelled' });
    expect(await end(iterator)).toMatchObject({ code: 'leader_lost' });
    expect(await ask(second)).toBe(LONG);
    expect(second.sharing).toMatchObject({ role: 'leader', tabs: 1 });
    await second.unload();
    expect(b.workers[0]).toMatchObject({ isTerminated: true, engine: { isFree: true } });
    await until(() => browser.locks.names.filter((name) => !name.endsWith('-host')).length === 0);
  });

  test('unload of a follower leaves the others alone', async () => {
    const [, a, , first, second] = await two({ sharedWorkers, answer: LONG });
    const iterator = await begun(first);
    await second.unload();
    await until(() => first.sharing?.tabs === 1);
    expect(a.workers[0]?.engine.isFree).toBe(false);
    expect(await end(iterator)).toBe('complete');
  });

  test('a load that fails is the next one’s to try', async () => {
    const browser = new FakeBrowser({ sharedWorkers });
    const loadEngine = vi.fn(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      throw { code: 'out_of_memory', message: 'too large' };
    });
    const [a, b] = [browser.open({ module: { loadEngine } }), browser.open()];
    const first = a.load();
    const second = b.load();
    await expect(first).rejects.toMatchObject({ code: 'out_of_memory' });
    expect(await ask(await second)).toBe('Hello');
    expect((await second).sharing?.role).toBe('leader');
  });

  test('a load that fails everywhere fails for everybody, and leaves no lock', async () => {
    const failing = { loadEngine: () => Promise.reject({ code: 'corrupt_model', message: 'no model' }) };
    const browser = new FakeBrowser({ sharedWorkers, module: failing });
    const loads = [1, 2, 3].map(() => browser.open().load());
    for (const result of await Promise.allSettled(loads)) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'corrupt_model' } });
    }
    await until(() => browser.locks.names.filter((name) => !name.endsWith('-host')).length === 0);
  });

  test('a new leader that cannot load fails what waits, and the next one tries', async () => {
    const browser = new FakeBrowser({ sharedWorkers });
    const loadEngine = (): Promise<never> => Promise.reject({ code: 'out_of_memory', message: 'too large' });
    const [a, b] = [browser.open(), browser.open({ module: { loadEngine } })];
    await a.load();
    const [second, third] = [await b.load(), await browser.open().load()];
    a.kill();
    await expect(ask(second)).rejects.toMatchObject({ code: 'out_of_memory' });
    expect(second.ended).toMatchObject({ code: 'out_of_memory' });
    expect(await ask(third)).toBe('Hello');
    expect(third.sharing?.role).toBe('leader');
  });

  test.each(['leading', 'following'])('an abort while %s loads leaves and frees every lock', async (role) => {
    const browser = new FakeBrowser({ sharedWorkers, module: { loadEngine: forever } });
    const [a, b] = [browser.open(), browser.open()];
    const controllers = [new AbortController(), new AbortController()];
    const loads = [a, b].map((tab, i) => tab.load({ signal: (controllers[i] as AbortController).signal }));
    const settled = Promise.allSettled(loads);
    await until(() => a.workers.length === 1);
    const order = role === 'leading' ? [0, 1] : [1, 0];
    for (const index of order) {
      controllers[index]?.abort();
      await expect(loads[index]).rejects.toMatchObject({ code: 'cancelled' });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await settled;
    await until(() => browser.locks.names.filter((name) => !name.endsWith('-host')).length === 0);
    expect([...a.workers, ...b.workers].every((worker) => worker.isTerminated)).toBe(true);
  });

  test('a leader that dies while it loads is followed by the next one, which loads', async () => {
    const browser = new FakeBrowser({ sharedWorkers });
    const a = browser.open({ module: { loadEngine: forever } });
    void a.load();
    await until(() => a.workers[0]?.received.some(({ type }) => type === 'load'));
    const loads = [browser.open().load(), browser.open().load()];
    await new Promise((resolve) => setTimeout(resolve, 20));
    a.kill();
    const engines = await Promise.all(loads);
    expect(engines.map((engine) => engine.sharing?.role)).toEqual(['leader', 'follower']);
    expect(await Promise.all(engines.map(ask))).toEqual(['Hello', 'Hello']);
  });

  test('a stream that is aborted and never read holds nothing up', async () => {
    const [, a, , first, second] = await two({ sharedWorkers, answer: LONG });
    const controller = new AbortController();
    await second.chat.completions.create({ messages, stream: true }, { signal: controller.signal });
    const { engine } = a.workers[0] as FakeTab['workers'][0];
    await until(() => [...engine.running.values()].some(({ sent }) => (sent.get(0) ?? 0) > 3));
    controller.abort();
    await until(() => engine.running.size === 0);
    expect(await ask(first)).toBe(LONG);
  });

  test('a page that is put away hands over, and takes part again when it is back', async () => {
    const [browser, a, , first, second] = await two({ sharedWorkers, answer: LONG });
    const iterator = await begun(first);
    a.page.dispatchEvent(new Event('pagehide'));
    expect(await end(iterator)).toMatchObject({ code: 'leader_lost' });
    expect(await ask(second)).toBe(LONG);
    const waiting = first.tokenize('ab');
    a.page.dispatchEvent(new Event('pageshow'));
    expect(await waiting).toEqual([97, 98]);
    expect([first.sharing?.role, second.sharing?.role]).toEqual(['follower', 'leader']);
    await Promise.all([first.unload(), second.unload()]);
    a.page.dispatchEvent(new Event('pageshow'));
    await until(() => browser.locks.names.filter((name) => !name.endsWith('-host')).length === 0);
  });

  test('a crash of the engine ends the leader’s, and the others go on with a new one', async () => {
    let hasCrashed = false;
    const browser = new FakeBrowser({ sharedWorkers });
    const step = async (): Promise<never> => {
      hasCrashed = true;
      throw new WebAssembly.RuntimeError('unreachable');
    };
    const first = await browser.open({ engine: { step } }).load();
    const second = await browser.open().load();
    await expect(ask(first)).rejects.toMatchObject({ code: 'worker_crashed' });
    expect(hasCrashed).toBe(true);
    expect(await ask(second)).toBe('Hello');
    expect(first.ended).toMatchObject({ code: 'worker_crashed' });
  });

  test('a lost device is the leader’s error, and the others go on with a new one', async () => {
    const step = (): Promise<never> => Promise.reject({ code: 'device_lost', message: 'the GPU is gone' });
    const browser = new FakeBrowser({ sharedWorkers });
    const first = await browser.open({ engine: { step } }).load();
    const second = await browser.open().load();
    await expect(ask(first)).rejects.toMatchObject({ code: 'device_lost' });
    expect(await ask(second)).toBe('Hello');
    expect(first.ended).toMatchObject({ code: 'device_lost' });
  });

  test('listeners and step targets go along', async () => {
    const [, a, b, , second] = await two({ sharedWorkers });
    const [steps, events] = [vi.fn(), vi.fn()];
    second.onStep(steps);
    const endEvents = second.cache.onEvent(events);
    await ask(second);
    await until(() => steps.mock.calls.length > 0 && events.mock.calls.length > 0);
    a.kill();
    await ask(second);
    steps.mockClear();
    events.mockClear();
    await ask(second);
    await until(() => steps.mock.calls.length > 0 && events.mock.calls.length > 0);
    expect(b.workers[0]?.engine.stepTarget).toBe(30);
    endEvents();
  });

  test('another model, other options or another name is another engine', async () => {
    const browser = new FakeBrowser({ sharedWorkers });
    const tab = browser.open();
    const engines = [
      await tab.load(),
      await browser.open().load({ contextLength: 50 }),
      await browser.open().load({ share: { name: 'mine' } }),
      await browser.open().load({}, new File([new Uint8Array(99)], 'other.gguf')),
    ];
    expect(engines.map((engine) => engine.sharing?.role)).toEqual(['leader', 'leader', 'leader', 'leader']);
    expect(browser.numLoads).toBe(4);
    expect((await browser.open().load({ share: { name: 'mine' } })).sharing?.role).toBe('follower');
  });
});

test('a follower that cannot read a message follows anew', async () => {
  const [browser, , , first, second] = await two({ answer: LONG });
  const iterator = await begun(second);
  browser.bus.garble();
  expect(await end(iterator)).toMatchObject({ code: 'leader_lost' });
  expect(await ask(second)).toBe(LONG);
  expect([first.sharing?.role, browser.numLoads]).toEqual(['leader', 1]);
});
