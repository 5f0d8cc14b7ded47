import { afterEach, expect, test, vi } from 'vitest';
import { ERROR_CODES } from '../src/index.js';
import { documentOf, run } from './examples.js';

const { text: readme, examples } = documentOf('../README.md');

afterEach(() => vi.restoreAllMocks());

test.each([
  [0, ['ready', 'H', 'o']],
  [1, ['llama']],
  [2, ['1000 1000', 'model 1000 true', 'true']],
  [3, ['bad_request', '72,101']],
  [4, ['Hello']],
  [5, []],
  [6, ['1.0', '1.0']],
  [7, ['A date or time changes', '40 GiB', 'fits']],
  [8, ['Hello']],
  [9, ['H', 'o']],
])('example %d runs', async (index, printed) => {
  const lines = await run(examples[index] as string);
  for (const part of printed) expect(lines.join('\n')).toContain(part);
});

test('there are no other examples, and every code is listed', () => {
  expect(examples.length).toBe(10);
  for (const code of ERROR_CODES) expect(readme).toContain(`\`${code}\``);
});
