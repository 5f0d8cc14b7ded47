// The crate as a WebAssembly module with its JavaScript glue, in js/wasm/, optimised and within its size limit; and beside it
// the module that compiles constraints (src/grammar), which a page loads with the first request that has one.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { packageBin } from './packages.mjs';
import { root, target, wasmOut } from './paths.mjs';
import { ensureRust, TARGET } from './rust.mjs';
import { run, say, step, UserError } from './shell.mjs';
import { fingerprint, isCurrent, whenChanged } from './stamp.mjs';
import { ensureWasmBindgen, wasmBindgenVersion } from './wasm-bindgen.mjs';

const INPUTS = ['Cargo.toml', 'Cargo.lock', 'src', 'shaders', 'scripts/wasm.mjs'];
/** The modules by name: their package and how cargo builds it, what must not be exported, and what a visitor may have to download. */
const MODULES = {
  pagewise: {
    cargo: ['build', '--lib'],
    compiled: 'pagewise.wasm',
    // Raise a limit only together with what was gained for it.
    limits: { raw_bytes: 4_200_000, brotli_bytes: 1_100_000 },
  },
  grammar: {
    cargo: ['rustc', '--package', 'pagewise-grammar', '--lib', '--crate-type', 'cdylib'],
    compiled: 'pagewise_grammar.wasm',
    // It can be started anew where a grammar has made it crash; what was made before is known as such.
    glue: ['--experimental-reset-state-function'],
    // llguidance's interface to C, which would keep code that nobody calls.
    dropped: /^llg_/,
    limits: { raw_bytes: 1_850_000, brotli_bytes: 480_000 },
  },
};

const fileOf = (name) => path.join(wasmOut, `${name}_bg.wasm`);

/** Features that every browser with WebGPU has. */
const FEATURES = [
  'bulk-memory',
  'mutable-globals',
  'nontrapping-float-to-int',
  'sign-ext',
  'reference-types',
  'multivalue',
  'simd',
];

const print = () => fingerprint(INPUTS, wasmBindgenVersion());
const LAST = fileOf('grammar');

/** Builds js/wasm unless it is up to date. Answers whether there was anything to do. */
export function buildWasm() {
  return whenChanged('wasm', print(), LAST, () => step('WebAssembly modules', compile));
}

/** Deletes js/wasm if it was built from other sources. */
export function dropOldWasm() {
  if (!isCurrent('wasm', print(), LAST)) fs.rmSync(wasmOut, { recursive: true, force: true });
}

async function compile() {
  await ensureRust();
  const bindgen = await ensureWasmBindgen();
  fs.rmSync(wasmOut, { recursive: true, force: true });
  say('from Rust: about five minutes on two cores the first time, two later');
  const finished = [];
  for (const [name, { cargo }] of Object.entries(MODULES)) {
    await step(`${name}: compiling`, () =>
      run('cargo', [...cargo, '--profile', 'wasm', '--target', TARGET], { cwd: root }),
    );
    // On one core, while the next one is compiled.
    finished.push(step(`${name}: optimising`, () => finish(name, bindgen)));
    // Looked at below; until then nobody waits for it.
    finished.at(-1).catch(() => undefined);
  }
  await Promise.all(finished);
}

/** From what cargo made to what pages load. */
async function finish(name, bindgen) {
  const { compiled, glue = [], dropped } = MODULES[name];
  const file = path.join(target, TARGET, 'wasm', compiled);
  const out = ['--target', 'web', '--out-name', name, '--out-dir', wasmOut, ...glue];
  await run(path.join(bindgen, 'wasm-bindgen'), [...out, file]);
  if (dropped !== undefined) await dropExports(fileOf(name), dropped);
  const features = FEATURES.map((feature) => `--enable-${feature}`);
  const flags = ['-O3', ...features, '--strip-debug', '--strip-producers', '-o', `${fileOf(name)}.optimised`];
  await run(process.execPath, [packageBin('binaryen', 'wasm-opt'), fileOf(name), ...flags]);
  fs.renameSync(`${fileOf(name)}.optimised`, fileOf(name));
}

/** Takes exports away from a module, for the optimiser to find what is left unused. */
async function dropExports(file, pattern) {
  const { default: binaryen } = await import('binaryen');
  const module = binaryen.readBinary(fs.readFileSync(file));
  const exports = Array.from({ length: module.getNumExports() }, (_, index) => module.getExportByIndex(index));
  const names = exports.map((each) => binaryen.getExportInfo(each).name);
  for (const name of names.filter((each) => pattern.test(each))) module.removeExport(name);
  fs.writeFileSync(file, module.emitBinary());
  module.dispose();
}

/** Bytes of a module, as it is and as a server sends it. */
export function wasmSizes(name = 'pagewise') {
  const module = fs.readFileSync(fileOf(name));
  return { raw_bytes: module.length, brotli_bytes: zlib.brotliCompressSync(module).length };
}

/** Fails when a module has grown past its limits. */
export function checkWasmSize() {
  for (const [name, { limits }] of Object.entries(MODULES)) {
    const sizes = wasmSizes(name);
    for (const [key, limit] of Object.entries(limits)) {
      say(`${name}, ${key}: ${sizes[key].toLocaleString('en')} of ${limit.toLocaleString('en')} allowed`);
      if (sizes[key] > limit) {
        throw new UserError(
          `the WebAssembly module ${name} has ${sizes[key]} ${key}, the limit is ${limit}`,
          'find what grew (cargo bloat, twiggy) before raising the limit in scripts/wasm.mjs',
        );
      }
    }
  }
}
