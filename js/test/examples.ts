/** Code blocks of documents, run as they are written: the engine's worker is the fake one, and so are files and servers. */

import { readFileSync } from 'node:fs';
import * as ai from 'ai';
import OpenAI from 'openai';
import { vi } from 'vitest';
import * as aiSdk from '../src/ai-sdk.js';
import { ConversationBudget, createFetch, Engine, PagewiseError } from '../src/index.js';
import * as promptApi from '../src/prompt-api.js';
import { Router } from '../src/remote.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';
import { FakeServer, modelFile } from './fake-server.js';
import { FakeDisk } from './fake-storage.js';

/** A document and its blocks of JavaScript. */
export function documentOf(path: string): { text: string; examples: string[] } {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8');
  return { text, examples: [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string) };
}

/** What examples import, by name; `more` is for the fake engine. */
function modules(more: FakeOptions): Record<string, object> {
  const server = new FakeServer();
  const address = 'https://files.example/model.gguf';
  server.files.set(address, { bytes: modelFile(1000) });
  const info = { ...new FakeWorker().engine.info(), contextLength: 1000 };
  const fake = { ...more, engine: { info: () => info }, storage: new FakeDisk().environment, network: server.network };
  const options = (given: object = {}): object => ({ ...given, createWorker: () => new FakeWorker(fake).asWorker });
  const pagewise = {
    PagewiseError,
    ConversationBudget,
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
  const remote = { Router: { load: (_: string, given: object) => Router.load(fakeModel(), options(given)) } };
  const others = { ai, openai: { default: OpenAI }, 'pagewise/ai-sdk': aiSdk, 'pagewise/prompt-api': promptApi };
  return { pagewise, 'pagewise/remote': remote, ...others };
}

/** The part of a file in the browser's storage that an example uses. */
export class FakeFile {
  #data = new Blob();

  get navigator(): object {
    const write = async (data: Blob): Promise<void> => {
      this.#data = data;
    };
    const writable = { write, close: async () => undefined };
    const handle = { getFile: async () => this.#data, createWritable: async () => writable };
    return { storage: { getDirectory: async () => ({ getFileHandle: async () => handle }) } };
  }
}

/** Runs an example; answers what it printed, a line for each `console.log`. */
export async function run(code: string, more: FakeOptions = {}, navigator?: object): Promise<string[]> {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((...values) => void lines.push(values.join(' ')));
  const body = code.replace(/^import (\{.*\}|\w+) from '(.+)';$/gm, (_, names: string, from: string) => {
    return `const ${names.startsWith('{') ? names : `{ default: ${names} }`} = modules['${from}'];`;
  });
  const AsyncFunction = (async () => undefined).constructor as new (
    ...args: string[]
  ) => (modules: object, navigator: object) => unknown;
  await new AsyncFunction('modules', 'navigator', body)(modules(more), navigator ?? {});
  return lines;
}
