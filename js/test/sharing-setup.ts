/** What the tests of sharing have in common. */

import { afterEach, beforeEach, expect, vi } from 'vitest';
import type { Engine } from '../src/engine.js';
import { FakeBrowser, type FakeBrowserOptions, type FakeTab } from './fake-tabs.js';

export const messages = [{ role: 'user', content: 'Hi' }] as const;
export const LONG = 'x'.repeat(150);

/** A whole answer. */
export const ask = async (engine: Engine): Promise<string | null | undefined> =>
  (await engine.chat.completions.create({ messages })).choices[0]?.message.content;

/** A stream that has begun: its first text was read. */
export async function begun(engine: Engine): Promise<AsyncIterator<unknown>> {
  const stream = await engine.chat.completions.create({ messages, stream: true });
  const iterator = stream[Symbol.asyncIterator]();
  for (let i = 0; i < 2; i++) await iterator.next();
  return iterator;
}

/** What a stream ends with. */
export async function end(iterator: AsyncIterator<unknown>): Promise<unknown> {
  for (;;) {
    try {
      if ((await iterator.next()).done) return 'complete';
    } catch (error) {
      return error;
    }
  }
}

/** Two tabs: the first one leads. */
export async function two(options: FakeBrowserOptions = {}): Promise<[FakeBrowser, FakeTab, FakeTab, Engine, Engine]> {
  const browser = new FakeBrowser(options);
  const [a, b] = [browser.open(), browser.open()];
  const first = await a.load();
  const second = await b.load();
  return [browser, a, b, first, second];
}

/** Tests of a file take their time on machines that do much else, and leave no rejection that nobody handles. */
export function watchRejections(): void {
  vi.setConfig({ testTimeout: 30_000 });
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  beforeEach(() => process.on('unhandledRejection', note));
  afterEach(() => {
    process.off('unhandledRejection', note);
    expect(unhandled.splice(0)).toEqual([]);
  });
}
