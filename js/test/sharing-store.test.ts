import { beforeEach, expect, test } from 'vitest';
import { Engine } from '../src/engine.js';
import type { LoadProgress } from '../src/types.js';
import { FakeWorker } from './fake.js';
import { FakeServer, modelFile } from './fake-server.js';
import { FakeDisk } from './fake-storage.js';
import { FakeBrowser, type FakeTab, until } from './fake-tabs.js';
import { ask, watchRejections } from './sharing-setup.js';

watchRejections();

const FILE = modelFile(300_000);
const MODEL = 'https://files.example/a.gguf';

let server: FakeServer;
let disk: FakeDisk;
let browser: FakeBrowser;

beforeEach(() => {
  server = new FakeServer();
  server.files.set(MODEL, { bytes: FILE, etag: '"1"' });
  disk = new FakeDisk();
  browser = new FakeBrowser({ storage: disk.environment, network: server.network });
});

const share = { owner: 'tab' } as const;
const load = (tab: FakeTab, more: object = {}): Promise<Engine> => tab.load({ share, ...more }, MODEL);
const isStored = (): Promise<boolean> =>
  Engine.models.has(MODEL, {
    createWorker: () => new FakeWorker({ storage: disk.environment, network: server.network }).asWorker,
  });

test('a tab that asks to store does, though another one has loaded the model without', async () => {
  const [a, b] = [browser.open(), browser.open()];
  await load(a);
  expect(await isStored()).toBe(false);
  const phases: LoadProgress['phase'][] = [];
  const second = await load(b, { store: true, onProgress: ({ phase }: LoadProgress) => void phases.push(phase) });
  expect(await isStored()).toBe(true);
  expect(phases).toContain('download');
  expect(second.sharing).toMatchObject({ role: 'follower', isReady: true });
  expect(await ask(second)).toBe('Hello');
  // The worker that stored it is gone, and the model was loaded once.
  expect([browser.numLoads, b.workers.map(({ isTerminated }) => isTerminated)]).toEqual([1, [true]]);
});

test('what the leader has stored is not downloaded again', async () => {
  await load(browser.open(), { store: true });
  const { length } = server.requests;
  await load(browser.open(), { store: true });
  expect(server.requests.length).toBe(length);
});

test('a tab for which there is no room is told so, and the others go on', async () => {
  const first = await load(browser.open());
  disk.told = { usage: 1, quota: 2 };
  const tab = browser.open();
  await expect(load(tab, { store: true })).rejects.toMatchObject({ code: 'storage_full' });
  await until(() => first.sharing?.tabs === 1);
  expect(await ask(first)).toBe('Hello');
  expect(browser.locks.names.filter((name) => name.includes('-tab-'))).toHaveLength(1);
});

test('a tab that comes to lead while it stores has stored it once', async () => {
  const a = browser.open();
  await load(a);
  let go: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  let numHeld = 0;
  server.intercept = () => {
    numHeld += 1;
    return held.then(() => undefined);
  };
  const second = load(browser.open(), { store: true });
  await until(() => numHeld > 0);
  a.kill();
  server.intercept = () => undefined;
  go();
  const engine = await second;
  await until(() => engine.sharing?.role === 'leader');
  expect(await ask(engine)).toBe('Hello');
  expect([await isStored(), disk.numConflicts]).toEqual([true, 0]);
});

test('an abort while it stores ends that too', async () => {
  await load(browser.open());
  server.intercept = () => new Promise<undefined>(() => undefined);
  const tab = browser.open();
  const controller = new AbortController();
  const loading = load(tab, { store: true, signal: controller.signal });
  await until(() => tab.workers.length === 1);
  controller.abort();
  await expect(loading).rejects.toMatchObject({ code: 'cancelled' });
  await until(() => tab.workers[0]?.isTerminated);
  expect(await isStored()).toBe(false);
});
