// Counts of tests, read from what each runner prints or writes.

export const none = () => ({ passed: 0, failed: 0, skipped: 0 });

export function add(into, counts) {
  for (const key of Object.keys(into)) into[key] += counts[key];
  return into;
}

export const describe = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed, ${skipped} skipped`;

/**
 * `cargo test` and `wasm-bindgen-test-runner`: one result line for each test binary. A test that cannot run here says
 * so in a line that starts with `skipped:`; such tests pass for cargo, and are counted as skipped.
 */
export function fromCargo(output) {
  const counts = none();
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    add(counts, { passed: Number(passed), failed: Number(failed), skipped: Number(ignored) });
  }
  const skipped = output.match(/^skipped: /gm)?.length ?? 0;
  return { ...counts, passed: Math.max(counts.passed - skipped, 0), skipped: counts.skipped + skipped };
}

/** The summary of `node --test` with the spec reporter. */
export function fromNode(output) {
  const count = (word) => Number(new RegExp(`^\\S+ ${word} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);
  return {
    passed: count('pass'),
    failed: count('fail') + count('cancelled'),
    skipped: count('skipped') + count('todo'),
  };
}

/** Vitest's JSON report. */
export function fromVitest(report) {
  return {
    passed: report.numPassedTests,
    failed: Math.max(report.numFailedTests, report.success ? 0 : 1),
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

/** A runner that failed without counting a failure (it did not compile, it crashed) has one failure. */
export function withExit(counts, code) {
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}
