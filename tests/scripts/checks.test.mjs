import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAllowed } from '../../scripts/licences.mjs';
import { fromCargo, fromNode, fromVitest, withExit } from '../../scripts/tally.mjs';

test('a licence expression is allowed when it can be met', () => {
  const allowed = ['MIT', 'Apache-2.0', 'Unicode-3.0', 'Apache-2.0 WITH LLVM-exception'];
  for (const expression of [
    'MIT',
    'GPL-3.0 OR MIT',
    'GPL-2.0/MIT',
    '(MIT OR GPL-3.0) AND Unicode-3.0',
    'Apache-2.0 WITH LLVM-exception',
  ]) {
    assert.equal(isAllowed(expression, allowed), true, expression);
  }
  for (const expression of [
    'GPL-3.0',
    'GPL-3.0 AND MIT',
    'MIT AND (GPL-3.0 OR LGPL-3.0)',
    'MIT WITH surprise',
    'MIT MIT',
    '',
  ]) {
    assert.equal(isAllowed(expression, allowed), false, expression);
  }
});

test('counts of cargo add up over test binaries, and skips that a test prints are not passes', () => {
  const output = [
    'test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s',
    'skipped: no model',
    'test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s',
  ].join('\n');
  assert.deepEqual(fromCargo(output), { passed: 4, failed: 1, skipped: 2 });
});

test("counts of node's and of Vitest's reports", () => {
  const output = 'ℹ tests 4\nℹ pass 2\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n';
  assert.deepEqual(fromNode(output), { passed: 2, failed: 1, skipped: 1 });
  const report = { numPassedTests: 5, numFailedTests: 0, numPendingTests: 1, numTodoTests: 1, success: false };
  assert.deepEqual(fromVitest(report), { passed: 5, failed: 1, skipped: 2 });
});

test('a runner that dies without a count has failed', () => {
  assert.equal(withExit({ passed: 3, failed: 0, skipped: 0 }, 101).failed, 1);
  assert.equal(withExit({ passed: 3, failed: 2, skipped: 0 }, 101).failed, 2);
  assert.equal(withExit({ passed: 3, failed: 0, skipped: 0 }, 0).failed, 0);
});
