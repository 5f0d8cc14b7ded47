// Rust with the wasm32-unknown-unknown target: whatever is here already, else rustup, else Debian's compiler.
//
// PAGEWISE_RUST_ROUTE = auto (default) | installed | rustup | debian tries one way only.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { aptInstall } from './apt.mjs';
import { debianToolchain } from './debian-rust.mjs';
import { root } from './paths.mjs';
import { attempt, capture, say, UserError, which } from './shell.mjs';

export const TARGET = 'wasm32-unknown-unknown';
const RUSTUP_URL = 'https://sh.rustup.rs';
const ROUTES = ['auto', 'installed', 'rustup', 'debian'];

/** The oldest compiler that Cargo.toml allows, as [major, minor]. */
function minimumVersion() {
  const manifest = fs.readFileSync(path.join(root, 'Cargo.toml'), 'utf8');
  return /^rust-version = "(\d+)\.(\d+)/m.exec(manifest).slice(1).map(Number);
}

/** Whether the `rustc` on the PATH is new enough to build the project. */
function isNewEnough() {
  const found = /^rustc (\d+)\.(\d+)/.exec(capture('rustc', ['--version']) ?? '');
  if (!found) return false;
  const [major, minor] = minimumVersion();
  return Number(found[1]) > major || (Number(found[1]) === major && Number(found[2]) >= minor);
}

/** rustc names the target's folder whether or not it exists, so look for the library itself. */
function hasTarget() {
  const folder = capture('rustc', ['--print', 'target-libdir', '--target', TARGET]);
  return (
    folder !== null && fs.existsSync(folder) && fs.readdirSync(folder).some((name) => /^libstd-.*\.rlib$/.test(name))
  );
}

const isReady = () => isNewEnough() && hasTarget();

/** rustup's programs are found even where the login shell has not been told of them. */
function addCargoHome() {
  const bin = path.join(process.env.CARGO_HOME ?? path.join(os.homedir(), '.cargo'), 'bin');
  const folders = process.env.PATH.split(path.delimiter);
  if (fs.existsSync(bin) && !folders.includes(bin)) process.env.PATH = [...folders, bin].join(path.delimiter);
}

async function installRustup() {
  say(`no Rust here: installing it for this user with rustup (${RUSTUP_URL})`);
  let script;
  try {
    const response = await fetch(RUSTUP_URL, { signal: AbortSignal.timeout(20_000) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    script = await response.text();
  } catch (error) {
    say(`rustup cannot be fetched: ${error.cause?.message ?? error.message}`);
    return;
  }
  const file = path.join(os.tmpdir(), `rustup-init-${process.pid}.sh`);
  fs.writeFileSync(file, script);
  await attempt(
    'sh',
    [file, '-y', '--no-modify-path', '--profile', 'minimal', '--component', 'clippy,rustfmt', '--target', TARGET],
    {
      timeout_s: 900,
    },
  );
  fs.rmSync(file);
  addCargoHome();
}

async function viaRustup() {
  if (!which('rustup')) {
    if (which('rustc') && process.env.PAGEWISE_RUST_ROUTE !== 'rustup') return false;
    if (process.platform === 'win32') return false;
    await installRustup();
    if (!which('rustup')) return false;
  }
  if (!isNewEnough()) {
    say(`the active Rust is older than ${minimumVersion().join('.')}: rustup toolchain install stable`);
    await attempt(
      'rustup',
      ['toolchain', 'install', 'stable', '--profile', 'minimal', '--component', 'clippy,rustfmt'],
      { timeout_s: 900 },
    );
    process.env.RUSTUP_TOOLCHAIN = 'stable';
  }
  if (!hasTarget()) {
    say(`rustup target add ${TARGET}`);
    // The time limit is for a network that swallows requests instead of refusing them.
    await attempt('rustup', ['target', 'add', TARGET], { timeout_s: 180 });
  }
  return isReady();
}

/** clippy and rustfmt, which `npm test` needs and a minimal installation lacks. */
export async function ensureRustComponents() {
  for (const [name, program] of [
    ['clippy', 'cargo-clippy'],
    ['rustfmt', 'rustfmt'],
  ]) {
    if (capture(program, ['--version']) !== null) continue;
    if (which('rustup')) await attempt('rustup', ['component', 'add', name], { timeout_s: 180 });
    if (capture(program, ['--version']) === null) {
      throw new UserError(`${name} is missing`, `install it for this Rust (with rustup: rustup component add ${name})`);
    }
  }
}

/** Makes `cargo` on the PATH able to build the project natively and for wasm32. Changes `process.env` of this process. */
export async function ensureRust() {
  const route = process.env.PAGEWISE_RUST_ROUTE ?? 'auto';
  if (!ROUTES.includes(route))
    throw new UserError(`PAGEWISE_RUST_ROUTE=${route} is unknown`, `use one of ${ROUTES.join(', ')}`);
  const allows = (name) => route === 'auto' || route === name;

  addCargoHome();
  if (!which('cc') && process.platform === 'linux')
    await aptInstall(['gcc', 'libc6-dev'], "as the Rust compiler's linker");
  const ready =
    (allows('installed') && isReady()) ||
    (allows('rustup') && (await viaRustup())) ||
    (allows('debian') && (await debianToolchain(isReady)));
  if (!ready) {
    throw new UserError(
      `no Rust ${minimumVersion().join('.')} or newer with ${TARGET}`,
      `install Rust from https://rustup.rs, then: rustup target add ${TARGET}`,
    );
  }
  say(`${capture('rustc', ['--version'])} with ${TARGET}`);
}
