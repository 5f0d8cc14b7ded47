// npm run mutations: breaks every rule of the prefix cache, one at a time, and expects a test to fail each time.
//
// The cache (src/kv) needs nothing of the crate but its error type, so a copy of the two is built with its tests: seconds
// for each rule, and the working tree is not touched. No part of `npm test`.
//
//   --only TEXT    rules whose name contains TEXT
import fs from 'node:fs';
import path from 'node:path';
import { MUTATIONS } from './mutation-list.mjs';
import { root, target } from './paths.mjs';
import { attempt, main, say, seconds, UserError } from './shell.mjs';

const crate = path.join(target, 'mutations');
const TESTS = ['kv', 'prefix'];
/** Longer than any test takes; what loops forever has failed. */
const TIMEOUT_S = 60;

/** The line of Cargo.toml that names a dependency. */
function dependency(manifest, name) {
  const line = manifest.match(new RegExp(`^${name} = .*$`, 'm'));
  if (line === null)
    throw new UserError(`Cargo.toml names no ${name}`, 'name what src/kv needs in scripts/mutations.mjs');
  return line[0];
}

function writeCrate() {
  fs.rmSync(path.join(crate, 'src'), { recursive: true, force: true });
  fs.rmSync(path.join(crate, 'tests'), { recursive: true, force: true });
  for (const name of ['src/kv', 'src/error.rs', 'tests/kv.rs', 'tests/prefix', 'Cargo.lock']) {
    fs.cpSync(path.join(root, name), path.join(crate, name), { recursive: true });
  }
  fs.writeFileSync(path.join(crate, 'src/lib.rs'), 'mod error;\npub mod kv;\npub use error::{Error, Result};\n');
  const manifest = fs.readFileSync(path.join(root, 'Cargo.toml'), 'utf8');
  const lines = [
    '[package]\nname = "pagewise"\nversion = "0.0.0"\nedition = "2024"\npublish = false\n\n[workspace]\n\n[dependencies]',
    ...['serde', 'thiserror'].map((name) => dependency(manifest, name)),
    '\n[dev-dependencies]',
    dependency(manifest, 'proptest'),
    '\n[profile.dev]\nopt-level = 1\ndebug = false\n',
  ];
  fs.writeFileSync(path.join(crate, 'Cargo.toml'), lines.join('\n'));
}

/** Builds the tests; answers their programs, or null if it does not compile. */
async function build() {
  const env = { ...process.env, CARGO_TARGET_DIR: path.join(crate, 'target'), RUSTFLAGS: '--cap-lints=allow' };
  const args = ['test', '--no-run', ...TESTS.flatMap((name) => ['--test', name])];
  const { code, output } = await attempt('cargo', args, { cwd: crate, env, quiet: true });
  return {
    programs:
      code === 0 ? [...output.matchAll(/Executable .*\((.*)\)/g)].map(([, file]) => path.resolve(crate, file)) : null,
    output,
  };
}

/** Names of the tests that fail; a program that does not end counts as one. */
async function failures(programs) {
  const failed = [];
  for (const program of programs) {
    const { code, output } = await attempt(program, ['--test-threads=2'], { quiet: true, timeout_s: TIMEOUT_S });
    const names = [...output.matchAll(/^test (.*) \.\.\. FAILED$/gm)].map(([, name]) => name);
    if (code !== 0) failed.push(...(names.length > 0 ? names : [`exit ${code}`]));
  }
  return failed;
}

async function tryMutation({ file, text, instead }) {
  const place = path.join(crate, 'src/kv', file);
  const source = fs.readFileSync(place, 'utf8');
  if (source.split(text).length !== 2) return { problem: `${file} does not have this once: ${text}` };
  // A function: `$` in a replacement text would mean something.
  fs.writeFileSync(
    place,
    source.replace(text, () => instead),
  );
  try {
    const { programs, output } = await build();
    return programs === null ? { problem: `does not compile:\n${output}` } : { failed: await failures(programs) };
  } finally {
    fs.writeFileSync(place, source);
  }
}

await main(async () => {
  const args = process.argv.slice(2);
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : '';
  const start_ms = Date.now();
  writeCrate();
  const { programs, output } = await build();
  if (programs === null || (await failures(programs)).length > 0) {
    throw new UserError(
      `the tests fail as things are\n${programs === null ? output : ''}`,
      'run `cargo test --test kv --test prefix`',
    );
  }
  const bad = [];
  const chosen = MUTATIONS.filter(({ rule }) => rule.includes(only));
  for (const mutation of chosen) {
    const { failed = [], problem } = await tryMutation(mutation);
    const is_caught = problem === undefined && failed.length > 0;
    if (!is_caught) bad.push(mutation.rule);
    const result = problem ?? (is_caught ? `caught by ${failed.length}: ${failed[0]}` : 'SURVIVES: no test fails');
    say(`${mutation.rule}: ${result}`);
  }
  console.log(`${chosen.length - bad.length} of ${chosen.length} broken rules were caught in ${seconds(start_ms)}`);
  if (bad.length > 0) throw new UserError(`not caught: ${bad.join('; ')}`, 'write a test that fails without the rule');
});
