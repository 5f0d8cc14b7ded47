import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Engine } from '../src/engine.js';
import { PagewiseError } from '../src/errors.js';
import { browserStorage } from '../src/storage.js';
import type { DownloadProgress, LoadProgress } from '../src/types.js';
import { FakeWorker } from './fake.js';
import { FakeServer, modelFile } from './fake-server.js';
import { FakeDisk } from './fake-storage.js';

const FILE = modelFile(700_000);
const URL_A = 'https://files.example/a.gguf';
const SHA256 = createHash('sha256').update(FILE).digest('hex');
const REGISTRY = 'https://files.example/registry.json';
const ENTRY = { id: 'tiny', name: 'Tiny', sources: ['a.gguf'], bytes: FILE.length, sha256: SHA256 };

let server: FakeServer;
let disk: FakeDisk;
let workers: FakeWorker[];

beforeEach(() => {
  server = new FakeServer();
  server.files.set(URL_A, { bytes: FILE, etag: '"1"' });
  disk = new FakeDisk();
  workers = [];
});

afterEach(() => vi.unstubAllGlobals());

const createWorker = (): Worker => {
  const worker = new FakeWorker({ storage: disk.environment, network: server.network });
  workers.push(worker);
  return worker.asWorker;
};

const goOffline = (): void => {
  server.intercept = () => new Response(null, { status: 404 });
};

describe('Engine.models', () => {
  test('downloads, lists, has and deletes; each call ends its worker', async () => {
    const told: DownloadProgress[] = [];
    const onProgress = (progress: DownloadProgress) => void told.push(progress);
    expect(await Engine.models.has(URL_A, { createWorker })).toBe(false);
    const model = await Engine.models.download(URL_A, { createWorker, onProgress, sha256: SHA256.toUpperCase() });
    expect(model).toMatchObject({ id: 'a', isComplete: true, sha256: [SHA256], urls: [URL_A] });
    expect(told[0]).toEqual({ loadedBytes: 0, totalBytes: FILE.length });
    expect(told.at(-1)).toEqual({ loadedBytes: FILE.length, totalBytes: FILE.length });
    expect(await Engine.models.list({ createWorker })).toEqual([model]);
    expect(await Engine.models.has(`${URL_A}#fragment`, { createWorker })).toBe(true);
    expect(await Engine.models.delete(URL_A, { createWorker })).toBe(true);
    expect(await Engine.models.delete(URL_A, { createWorker })).toBe(false);
    expect(await Engine.models.list({ createWorker })).toEqual([]);
    expect(workers.every(({ isTerminated }) => isTerminated)).toBe(true);
  });

  test('an abort settles the call at once and ends the worker', async () => {
    server.intercept = () => new Promise<undefined>(() => undefined);
    const controller = new AbortController();
    const loading = Engine.models.download(URL_A, { createWorker, signal: controller.signal });
    setTimeout(() => controller.abort(), 5);
    await expect(loading).rejects.toMatchObject({ code: 'cancelled' });
    expect(workers[0]?.isTerminated).toBe(true);
  });

  test('errors keep their code on the way', async () => {
    disk.told = { usage: 1, quota: 2 };
    const failure = Engine.models.download(URL_A, { createWorker });
    await expect(failure).rejects.toBeInstanceOf(PagewiseError);
    await expect(failure).rejects.toMatchObject({ code: 'storage_full', message: /700000 bytes asked, 1 free/ });
  });

  test('asks the browser to keep what is stored, and waits for no answer', async () => {
    const persist = vi.fn(() => new Promise<boolean>(() => undefined));
    vi.stubGlobal('navigator', { storage: { persist } });
    await Engine.models.download(URL_A, { createWorker });
    expect(persist).toHaveBeenCalledOnce();
  });

  test.each([
    [{ sha256: 'abc' }, 'sha256: 64'],
    [{ sha256: [SHA256, SHA256] }, 'sha256: one for each of 1 parts'],
    [{ store: true }, 'store is not supported'],
    [{ onProgress: 1 }, 'onProgress'],
  ])('refuses %j', async (options, message) => {
    const failure = { code: 'bad_request', message: expect.stringContaining(message) };
    const call = Engine.models.download(URL_A, { createWorker, ...(options as object) });
    await expect(call).rejects.toMatchObject(failure);
  });

  test('files are not downloaded, and are never there', async () => {
    const file = new File([FILE], 'a.gguf');
    await expect(Engine.models.download(file, { createWorker })).rejects.toMatchObject({ code: 'bad_request' });
    expect(await Engine.models.has(file, { createWorker })).toBe(false);
    expect(await Engine.models.delete(file, { createWorker })).toBe(false);
  });
});

describe('Engine.load', () => {
  test('writes nothing unless it is asked to', async () => {
    await Engine.load(URL_A, { createWorker });
    expect(disk.folders).toEqual([]);
  });

  test('with store downloads first, and then needs no network', async () => {
    const phases: LoadProgress[] = [];
    const engine = await Engine.load(URL_A, { createWorker, store: true, onProgress: (p) => void phases.push(p) });
    expect(engine.info).toMatchObject({ id: 'a', name: 'Fake Model' });
    expect([...new Set(phases.map(({ phase }) => phase))]).toEqual([
      'download',
      'header',
      'compile',
      'weights',
      'ready',
    ]);
    goOffline();
    for (const store of [true, false]) {
      expect((await Engine.load(URL_A, { createWorker, store })).info.id).toBe('a');
    }
    expect(await Engine.plan(URL_A, { createWorker })).toMatchObject({ weightsBytes: FILE.length });
    expect(await Engine.inspect(URL_A, { createWorker })).toMatchObject({ fileBytes: FILE.length });
  });

  test('with store downloads nothing that cannot run here', async () => {
    const plan = async (): Promise<never> => {
      throw { code: 'out_of_memory', message: '2 bytes asked, 1 allowed' };
    };
    const withPlan = (): Worker =>
      new FakeWorker({ storage: disk.environment, network: server.network, module: { plan } }).asWorker;
    const load = Engine.load(URL_A, { createWorker: withPlan, store: true });
    await expect(load).rejects.toMatchObject({ code: 'out_of_memory' });
    expect(disk.folders).toEqual([]);
  });

  test('with store reads files where they are', async () => {
    await Engine.load(new File([FILE], 'a.gguf'), { createWorker, store: true });
    expect(disk.folders).toEqual([]);
    const mixed = Engine.load([new File([FILE], 'a.gguf'), URL_A], { createWorker, store: true });
    await expect(mixed).rejects.toMatchObject({ code: 'bad_request', message: /http/ });
  });

  test('finds a model by the id of a registry that cannot be reached', async () => {
    let isOnline = true;
    vi.stubGlobal('fetch', async () => {
      if (!isOnline) throw new TypeError('offline');
      return Response.json({ models: [ENTRY] });
    });
    const options = { createWorker, registry: REGISTRY };
    await Engine.load('tiny', { ...options, store: true });
    isOnline = false;
    goOffline();
    expect((await Engine.load('tiny', options)).info).toMatchObject({ id: 'tiny', name: 'Tiny' });
    expect(await Engine.models.has('tiny', options)).toBe(true);
    expect(await Engine.models.download('tiny', options)).toMatchObject({ isComplete: true });
    const elsewhere = { createWorker, registry: 'https://other.example/registry.json' };
    expect(await Engine.models.has('tiny', elsewhere)).toBe(false);
    for (const call of [Engine.load('tiny', elsewhere), Engine.models.download('tiny', elsewhere)]) {
      await expect(call).rejects.toMatchObject({ code: 'network', message: /could not reach the registry/ });
    }
    expect(await Engine.models.delete('tiny', options)).toBe(true);
    await expect(Engine.load('tiny', options)).rejects.toMatchObject({ code: 'network' });
  });
});

describe('the browser’s storage', () => {
  test('is the file system, else IndexedDB, else none', async () => {
    const opened = vi.fn(() => {
      throw new Error('IndexedDB was opened');
    });
    const indexedDb = { open: opened } as unknown as IDBFactory;
    const refusing = { getDirectory: () => Promise.reject(new Error('private')) };
    const file = class {
      createSyncAccessHandle(): void {}
    };
    const open = (storage: object | undefined, factory?: IDBFactory) =>
      browserStorage({ storage } as unknown as Navigator, factory).open();
    const there = { getDirectory: async () => disk.root };
    await expect(open(there, indexedDb)).rejects.toThrow('IndexedDB');
    vi.stubGlobal('FileSystemFileHandle', file);
    await expect((await open(there, indexedDb)).keys()).resolves.toEqual([]);
    expect(opened).toHaveBeenCalledOnce();
    for (const storage of [undefined, {}, refusing])
      await expect(open(storage, indexedDb)).rejects.toThrow('IndexedDB');
    await expect(open(undefined)).rejects.toMatchObject({ code: 'storage_full' });
  });
});
