import { readFileSync } from 'node:fs';
import OpenAI from 'openai';
import { afterEach, expect, test, vi } from 'vitest';
import { ConversationBudget, createFetch, Engine, ERROR_CODES, PagewiseError } from '../src/index.js';
import { useShareEnvironment } from '../src/share-environment.js';
import { FakeWorker, fakeModel } from './fake.js';
import { FakeBus } from './fake-bus.js';
import { FakeLocks } from './fake-locks.js';
import { FakeServer, modelFile } from './fake-server.js';
import { FakeDisk } from './fake-storage.js';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const examples = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1] as string);

const [locks, bus] = [new FakeLocks().of({}), new FakeBus()];
useShareEnvironment(() => {
  return { locks, openBroadcast: (name) => bus.open(name), createSharedWorker: undefined, page: undefined, tickMs: 20 };
});

afterEach(() => vi.restoreAllMocks());

/** The package, with its sources replaced by a file and its worker by the fake one. */
function replaced(): object {
  const server = new FakeServer();
  const address = 'https://files.example/model.gguf';
  server.files.set(address, { bytes: modelFile(1000) });
  const fake = { storage: new FakeDisk().environment, network: server.network };
  const options = (given: object = {}): object => ({ ...given, createWorker: () => new FakeWorker(fake).asWorker });
  return {
    PagewiseError,
    ConversationBudget,
    OpenAI,
    createFetch,
    /** Without a service worker the site's requests are answered here. */
    registerRoute: async (engine: Engine) => {
      const baseURL = 'http://site/v1';
      vi.spyOn(globalThis, 'fetch').mockImplementation(createFetch(engine, { baseURL }));
      return { baseURL };
    },
    explainMiss: async () => ({ summary: 'A date or time changes', advice: 'Take it out' }),
    kvMemory: async () => ({ totalBytes: 40 * 2 ** 30 }),
    Engine: {
      load: (_source: string, given: object) => Engine.load(fakeModel(), options(given)),
      inspect: (_source: string, given: object) => Engine.inspect(fakeModel(), options(given)),
      plan: (_source: string, given: object) => Engine.plan(fakeModel(), options(given)),
      models: {
        download: (_source: string, given: object) => Engine.models.download(address, options(given)),
        list: () => Engine.models.list(options()),
        has: () => Engine.models.has(address, options()),
        delete: () => Engine.models.delete(address, options()),
      },
    },
  };
}

test.each([
  [0, ['ready', 'H', 'o']],
  [1, ['llama']],
  [2, ['1000 1000', 'model 1000 true', 'true']],
  [3, ['Hello']],
  [4, ['bad_request', '72,101']],
  [5, ['A date or time changes', '40 GiB', 'fits']],
  [6, ['Hello']],
  [7, ['H', 'o']],
])('example %d runs', async (index, printed) => {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((...values) => void lines.push(values.join(' ')));
  const body = (examples[index] as string)
    .replace(/import (\{.*\}) from 'pagewise';/, 'const $1 = pagewise;')
    .replace("import OpenAI from 'openai';", 'const { OpenAI } = pagewise;');
  const AsyncFunction = (async () => undefined).constructor as new (
    name: string,
    body: string,
  ) => (m: object) => unknown;
  await new AsyncFunction('pagewise', body)(replaced());
  for (const part of printed) expect(lines.join('\n')).toContain(part);
});

test('there are no other examples, and every code is listed', () => {
  expect(examples.length).toBe(8);
  for (const code of ERROR_CODES) expect(readme).toContain(`\`${code}\``);
});
