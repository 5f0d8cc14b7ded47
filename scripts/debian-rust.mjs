// Debian's Rust, made able to build for WebAssembly, for machines that cannot reach rustup's servers.
//
// Debian ships the standard library's source but no wasm32 build of it. It is built here once per compiler (about a
// minute on two cores), into a folder shaped like a toolchain: small scripts in its bin/ start Debian's compiler with
// that folder as the sysroot, so that cargo and all its helpers work unchanged. Only apt-get writes outside the folder.
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { aptInstall } from './apt.mjs';
import { capture, run, say, which } from './shell.mjs';

const TARGET = 'wasm32-unknown-unknown';
const PACKAGES = ['rustc-web', 'cargo-web', 'rust-web-src', 'rust-web-clippy', 'rustfmt-web'];
const RUSTC = '/usr/bin/rustc';
const folder = path.join(process.env.XDG_DATA_HOME ?? path.join(os.homedir(), '.local', 'share'), 'pagewise-rust');

/** A linker for WebAssembly: any lld understands the arguments that rustc gives its own. */
function findLinker() {
  const names = fs.readdirSync('/usr/bin').filter((name) => /^wasm-ld(-\d+)?$/.test(name));
  names.sort((a, b) => Number(/\d+$/.exec(a)?.[0] ?? 0) - Number(/\d+$/.exec(b)?.[0] ?? 0));
  return names.length > 0 ? fs.realpathSync(path.join('/usr/bin', names.at(-1))) : null;
}

function writeIfChanged(file, text, mode = 0o644) {
  const info = fs.lstatSync(file, { throwIfNoEntry: false });
  if (info?.isFile() && fs.readFileSync(file, 'utf8') === text) return;
  fs.rmSync(file, { force: true });
  fs.writeFileSync(file, text, { mode });
}

function link(from, to) {
  fs.rmSync(to, { force: true });
  fs.symlinkSync(from, to);
}

/** A script that starts Debian's `program` on our folder; a caller's own --sysroot wins, rustc refuses a second one. */
function wrapper(program, stamp) {
  return [
    '#!/bin/sh',
    // cargo identifies a compiler by its path and time: the stamp makes this file change when the compiler does.
    `# compiler ${stamp}`,
    `for a; do case $a in --sysroot | --sysroot=*) exec /usr/bin/${program} "$@" ;; esac; done`,
    // clippy-driver expects the name of the compiler as its first argument.
    `exec /usr/bin/${program} "$@" --sysroot '${folder}'`,
    '',
  ].join('\n');
}

function layOut(host, stamp, linker) {
  const bin = path.join(folder, 'bin');
  const rustlib = path.join(folder, 'lib', 'rustlib');
  for (const made of [bin, path.join(rustlib, host, 'bin'), path.join(rustlib, 'src')])
    fs.mkdirSync(made, { recursive: true });
  for (const program of ['rustc', 'rustdoc', 'clippy-driver'])
    writeIfChanged(path.join(bin, program), wrapper(program, stamp), 0o755);
  for (const program of ['cargo', 'cargo-fmt', 'rustfmt']) link(`/usr/bin/${program}`, path.join(bin, program));
  // cargo-clippy starts the clippy-driver beside its real self, so it has to be a copy for ours to be found.
  fs.copyFileSync('/usr/bin/cargo-clippy', path.join(bin, 'cargo-clippy'));
  link(`/usr/lib/rustlib/${host}/lib`, path.join(rustlib, host, 'lib'));
  link('/usr/lib/rustlib/src/rust', path.join(rustlib, 'src', 'rust'));
  link(linker, path.join(rustlib, host, 'bin', 'rust-lld'));
}

/** Builds the standard library for wasm32 out of tree and puts its parts where rustc looks for them. */
async function buildLibrary(stamp) {
  const output = path.join(folder, 'lib', 'rustlib', TARGET);
  const mark = path.join(output, '.built-by');
  if (fs.existsSync(mark) && fs.readFileSync(mark, 'utf8') === stamp) return;
  say(`building Rust's standard library for ${TARGET} (once, about a minute)`);
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-std-'));
  try {
    fs.mkdirSync(path.join(work, 'src'));
    fs.writeFileSync(path.join(work, 'src', 'lib.rs'), '#![no_std]\n');
    fs.writeFileSync(
      path.join(work, 'Cargo.toml'),
      '[package]\nname = "std-for-wasm"\nversion = "0.0.0"\nedition = "2021"\n\n[profile.release]\ncodegen-units = 1\n\n[workspace]\n',
    );
    const env = { ...process.env, RUSTC, CARGO_TARGET_DIR: path.join(work, 'target') };
    for (const name of ['CARGO_ENCODED_RUSTFLAGS', 'RUSTC_WRAPPER', 'RUSTC_WORKSPACE_WRAPPER', 'CARGO_BUILD_TARGET'])
      delete env[name];
    // A stable compiler takes -Z only with RUSTC_BOOTSTRAP; it is set for this one build of the library.
    env.RUSTC_BOOTSTRAP = '1';
    // Machine code and bitcode, as in the official builds, so that a user may choose link-time optimisation or not.
    env.RUSTFLAGS = '-Cembed-bitcode=yes';
    await run('/usr/bin/cargo', ['build', '--release', '--target', TARGET, '-Zbuild-std=std,panic_abort,test'], {
      cwd: work,
      env,
    });

    const built = path.join(work, 'target', TARGET, 'release', 'deps');
    fs.rmSync(output, { recursive: true, force: true });
    fs.mkdirSync(path.join(output, 'lib'), { recursive: true });
    for (const name of fs.readdirSync(built)) {
      if (/\.(rlib|rmeta)$/.test(name) && !name.includes('std_for_wasm'))
        fs.copyFileSync(path.join(built, name), path.join(output, 'lib', name));
    }
    fs.writeFileSync(mark, stamp);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

/** Installs and selects Debian's toolchain; answers what `isReady` then says. */
export async function debianToolchain(isReady) {
  if (!which('apt-get')) return false;
  await aptInstall([...PACKAGES, ...(findLinker() ? [] : ['lld-19'])], 'for Rust');
  const version = capture(RUSTC, ['-vV']);
  const host = /^host: (.+)$/m.exec(version)[1];
  const stamp = crypto.createHash('sha256').update(version).digest('hex');
  layOut(host, stamp, findLinker());
  await buildLibrary(stamp);
  // Ours first; rustup's folder, if any, stays on the PATH, else cargo would put it in front.
  process.env.PATH = `${path.join(folder, 'bin')}${path.delimiter}${process.env.PATH}`;
  delete process.env.RUSTUP_TOOLCHAIN;
  return isReady();
}
