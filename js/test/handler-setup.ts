/** What the tests of OpenAI's HTTP API have in common. */

import { expect } from 'vitest';
import { Engine } from '../src/index.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

export const messages = [{ role: 'user', content: 'Hi' }] as const;
export const chat = { model: 'fake-model', messages };

export async function start(options: FakeOptions = {}): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker(options);
  return { engine: await Engine.load(fakeModel(), { createWorker: () => worker.asWorker }), worker };
}

export const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
};

export const post = (path: string, body: unknown, init: RequestInit = {}): Request =>
  new Request(`http://localhost${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });
export const get = (path: string, method = 'GET'): Request => new Request(`http://localhost${path}`, { method });

/** The data of each event; everything else in the body is an error. */
export function events(text: string): string[] {
  const parts = text.split('\n\n');
  expect(parts.pop()).toBe('');
  // A comment, where nothing is to be said yet.
  if (parts[0] === ':') parts.shift();
  for (const part of parts) expect(part).toMatch(/^data: [^\n]*$/);
  return parts.map((part) => part.slice('data: '.length));
}

/** What its engine throws when a request comes. */
export function refuse(worker: FakeWorker, error: object): void {
  worker.engine.submit = () => {
    throw error;
  };
}
