import { describe, expect, test, vi } from 'vitest';
import { FakeBrowser, type FakeBrowserOptions, until } from './fake-tabs.js';
import { ask, begun, end, LONG, two, watchRejections } from './sharing-setup.js';

watchRejections();

describe('a shared worker that has the engine', () => {
  const host = (browser: FakeBrowser, index = 0): (typeof browser.hosts)[0] =>
    browser.hosts[index] as (typeof browser.hosts)[0];

  test('is what all tabs use: none of them has a worker', async () => {
    const [browser, a, b, first, second] = await two({ sharedWorkers: 'engine' });
    for (const engine of [first, second]) {
      expect(engine.sharing).toMatchObject({ role: 'follower', owner: 'shared-worker', isReady: true });
    }
    await until(() => first.sharing?.tabs === 2);
    expect(await Promise.all([ask(first), ask(second)])).toEqual(['Hello', 'Hello']);
    expect([browser.numLoads, browser.hosts.length, a.workers.length, b.workers.length]).toEqual([1, 1, 0, 0]);
  });

  test('goes on when a tab dies, without its requests', async () => {
    const [browser, a, , first, second] = await two({ sharedWorkers: 'engine', answer: LONG });
    void end(await begun(first));
    const other = await begun(second);
    a.kill();
    const { engine } = host(browser);
    await until(() => engine.running.size === 1);
    expect(await end(other)).toBe('complete');
    await until(() => second.sharing?.tabs === 1);
    expect(browser.numLoads).toBe(1);
  });

  test('frees the engine with the last tab, and loads it again', async () => {
    const [browser, a, , first, second] = await two({ sharedWorkers: 'engine' });
    await first.unload();
    expect(host(browser).engine.isFree).toBe(false);
    await second.unload();
    expect(host(browser).engine.isFree).toBe(true);
    expect(await ask(await a.load())).toBe('Hello');
    expect([browser.numLoads, browser.hosts.length]).toEqual([2, 1]);
  });

  test.each(['killed', 'crashed'])('is started anew when it is %s', async (how) => {
    const [browser, , , first, second] = await two({ sharedWorkers: 'engine', answer: LONG });
    const changes = vi.fn();
    first.onLeaderChange(changes);
    const iterator = await begun(first);
    if (how === 'killed') browser.killHost(0);
    else host(browser).host.crash(new WebAssembly.RuntimeError('unreachable'));
    expect(await end(iterator)).toMatchObject({ code: 'leader_lost', retriable: true });
    expect(await Promise.all([ask(first), ask(second)])).toEqual([LONG, LONG]);
    expect([browser.numLoads, browser.hosts.length]).toEqual([2, 2]);
    expect(changes).toHaveBeenCalledTimes(1);
  });

  test('whose load fails says why to every tab; the next load tries again', async () => {
    let isBroken = true;
    const module: FakeBrowserOptions['module'] = {
      loadEngine: async (...args) => {
        if (isBroken) throw { code: 'out_of_memory', message: 'too large' };
        return host(browser)
          .engine.module()
          .loadEngine(...args);
      },
    };
    const browser = new FakeBrowser({ sharedWorkers: 'engine', module });
    const tab = browser.open();
    for (const result of await Promise.allSettled([tab.load(), browser.open().load()])) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'out_of_memory' } });
    }
    isBroken = false;
    expect(await ask(await tab.load())).toBe('Hello');
  });

  test('that crashes while it loads is not tried for ever', async () => {
    const crash = (): Promise<never> => Promise.reject(new WebAssembly.RuntimeError('unreachable'));
    const browser = new FakeBrowser({ sharedWorkers: 'engine', module: { loadEngine: crash } });
    await expect(browser.open().load()).rejects.toMatchObject({ code: 'worker_crashed' });
    expect(browser.hosts).toHaveLength(1);
  });

  test('is left alone by tabs that want the engine among themselves', async () => {
    const browser = new FakeBrowser({ sharedWorkers: 'engine' });
    const engines = await Promise.all([1, 2].map(() => browser.open().load({ share: { owner: 'tab' } })));
    expect(engines.map((engine) => engine.sharing?.role).sort()).toEqual(['follower', 'leader']);
    expect(await Promise.all(engines.map(ask))).toEqual(['Hello', 'Hello']);
    expect([browser.numLoads, host(browser).engine.numLoads]).toEqual([1, 0]);
  });
});

test.each([
  [{ share: 'yes' }, 'share: true, false or a plain object'],
  [{ share: { name: '' } }, 'share.name'],
  [{ share: { owner: 'page' } }, 'share.owner'],
  [{ share: { names: 'x' } }, 'names is not supported'],
])('refuses %j', async (options, message) => {
  const load = new FakeBrowser().open().load(options as never);
  await expect(load).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining(message) });
});

test('a Blob does not say which model it is', async () => {
  const tab = new FakeBrowser().open();
  const blob = new Blob([new Uint8Array(64)]) as File;
  await expect(tab.load({}, blob)).rejects.toMatchObject({ code: 'bad_request' });
  expect((await tab.load({ share: { name: 'the only one' } }, blob)).sharing?.role).toBe('leader');
});

test('an engine that is not shared says so', async () => {
  const engine = await new FakeBrowser().open().load({ share: false });
  expect(engine.sharing).toBeNull();
  engine.onLeaderChange(() => undefined)();
});
