// The wasm-bindgen command-line tools, of exactly the version that Cargo.lock has for the library.
import fs from 'node:fs';
import path from 'node:path';
import { root, target, tools } from './paths.mjs';
import { capture, run, say, which } from './shell.mjs';

export function wasmBindgenVersion() {
  const lock = fs.readFileSync(path.join(root, 'Cargo.lock'), 'utf8');
  return /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock)[1];
}

/** The folder that holds `wasm-bindgen` and `wasm-bindgen-test-runner`, built on first use (minutes). */
export async function ensureWasmBindgen() {
  const version = wasmBindgenVersion();
  const installed = which('wasm-bindgen');
  if (installed && capture(installed, ['--version']) === `wasm-bindgen ${version}` && which('wasm-bindgen-test-runner'))
    return path.dirname(installed);

  const prefix = path.join(tools, `wasm-bindgen-${version}`);
  const bin = path.join(prefix, 'bin');
  if (capture(path.join(bin, 'wasm-bindgen'), ['--version']) === `wasm-bindgen ${version}`) return bin;
  say(`building wasm-bindgen-cli ${version} (once, about five minutes of processor time)`);
  // Seconds of work for it to do here: optimising it less saves half of the wait.
  const profile = { CARGO_PROFILE_RELEASE_OPT_LEVEL: '1', CARGO_PROFILE_RELEASE_LTO: 'off' };
  const env = { ...process.env, ...profile, CARGO_TARGET_DIR: path.join(target, 'wasm-bindgen-build') };
  await run('cargo', ['install', 'wasm-bindgen-cli', '--version', version, '--root', prefix, '--force'], {
    env,
    hint: 'check that crates.io can be reached, then run this again',
  });
  fs.rmSync(env.CARGO_TARGET_DIR, { recursive: true, force: true });
  return bin;
}
