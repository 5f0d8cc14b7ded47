import { afterEach, expect, test, vi } from 'vitest';
import { ERROR_CODES } from '../src/index.js';
import { useShareEnvironment } from '../src/share-environment.js';
import { documentOf, run } from './examples.js';
import { FakeBus } from './fake-bus.js';
import { FakeLocks } from './fake-locks.js';

const { text: readme, examples } = documentOf('../README.md');

const [locks, bus] = [new FakeLocks().of({}), new FakeBus()];
useShareEnvironment(() => {
  return { locks, openBroadcast: (name) => bus.open(name), createSharedWorker: undefined, page: undefined, tickMs: 20 };
});

afterEach(() => vi.restoreAllMocks());

test.each([
  [0, ['ready', 'H', 'o']],
  [1, ['llama']],
  [2, ['1000 1000', 'model 1000 true', 'true']],
  [3, ['Hello']],
  [4, ['bad_request', '72,101']],
  [5, ['Hello']],
  [6, []],
  [7, ['1.0', '1.0']],
  [8, ['A date or time changes', '40 GiB', 'fits']],
  [9, ['Hello']],
  [10, ['H', 'o']],
])('example %d runs', async (index, printed) => {
  const lines = await run(examples[index] as string);
  for (const part of printed) expect(lines.join('\n')).toContain(part);
});

test('there are no other examples, and every code is listed', () => {
  expect(examples.length).toBe(11);
  for (const code of ERROR_CODES) expect(readme).toContain(`\`${code}\``);
});
