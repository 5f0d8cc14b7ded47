// The crate as a WebAssembly module with its JavaScript glue, in js/wasm/, optimised and within its size limit.
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
const MODULE = path.join(wasmOut, 'pagewise_bg.wasm');

/** What a visitor downloads. Raise a limit only together with what was gained for it. */
const LIMITS = { raw_bytes: 4_200_000, brotli_bytes: 1_100_000 };

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

/** Builds js/wasm unless it is up to date. Answers whether there was anything to do. */
export function buildWasm() {
  return whenChanged('wasm', print(), MODULE, () => step('WebAssembly module', compile));
}

/** Deletes js/wasm if it was built from other sources. */
export function dropOldWasm() {
  if (!isCurrent('wasm', print(), MODULE)) fs.rmSync(wasmOut, { recursive: true, force: true });
}

async function compile() {
  await ensureRust();
  const bindgen = await ensureWasmBindgen();
  await run('cargo', ['build', '--profile', 'wasm', '--lib', '--target', TARGET], { cwd: root });
  const compiled = path.join(target, TARGET, 'wasm', 'pagewise.wasm');
  fs.rmSync(wasmOut, { recursive: true, force: true });
  await run(path.join(bindgen, 'wasm-bindgen'), [
    '--target',
    'web',
    '--out-name',
    'pagewise',
    '--out-dir',
    wasmOut,
    compiled,
  ]);
  const flags = ['-O3', ...FEATURES.map((feature) => `--enable-${feature}`), '--strip-debug', '--strip-producers'];
  await run(process.execPath, [packageBin('binaryen', 'wasm-opt'), MODULE, ...flags, '-o', `${MODULE}.optimised`]);
  fs.renameSync(`${MODULE}.optimised`, MODULE);
}

/** Bytes of the module, as it is and as a server sends it. */
export function wasmSizes() {
  const module = fs.readFileSync(MODULE);
  return { raw_bytes: module.length, brotli_bytes: zlib.brotliCompressSync(module).length };
}

/** Fails when the module has grown past its limits. */
export function checkWasmSize() {
  const sizes = wasmSizes();
  for (const [key, limit] of Object.entries(LIMITS)) {
    say(`${key}: ${sizes[key].toLocaleString('en')} of ${limit.toLocaleString('en')} allowed`);
    if (sizes[key] > limit) {
      throw new UserError(
        `the WebAssembly module has ${sizes[key]} ${key}, the limit is ${limit}`,
        'find what grew (cargo bloat, twiggy) before raising the limit in scripts/wasm.mjs',
      );
    }
  }
}
