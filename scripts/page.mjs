// The npm package (js/) and the page (www/), built in that order on top of the WebAssembly module.
import fs from 'node:fs';
import path from 'node:path';
import { ensurePackages } from './packages.mjs';
import { jsDist, models, pageDist, root } from './paths.mjs';
import { run, step } from './shell.mjs';
import { fingerprint, whenChanged } from './stamp.mjs';
import { buildWasm, dropOldWasm } from './wasm.mjs';

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const RUST_INPUTS = ['Cargo.toml', 'Cargo.lock', 'src', 'shaders'];
const PAGE_INPUTS = [...RUST_INPUTS, 'js', 'package-lock.json', 'www', 'models/registry.json'];

const compilePackage = () => run(npm, ['run', '--silent', 'build', '--workspace', 'js'], { cwd: root });

/** Compiles js/dist alone: enough for type checks, without the WebAssembly module. */
export async function buildTypes() {
  await ensurePackages();
  // The module's types come with it; js/src has their outline for when it is not there, and an old one is in the way.
  dropOldWasm();
  await whenChanged('js', fingerprint(['js', 'package-lock.json']), jsDist, () => step('npm package', compilePackage));
}

/** Builds the npm package, js/dist and js/wasm, unless up to date. */
export async function buildPackage() {
  await ensurePackages();
  await buildWasm();
  await buildTypes();
}

/** Builds www/dist, and what it needs, unless up to date. */
export async function buildPage() {
  await whenChanged('page', fingerprint(PAGE_INPUTS), path.join(pageDist, 'index.html'), async () => {
    await buildPackage();
    await step('page', () => run(npm, ['run', '--silent', 'build', '--workspace', 'www'], { cwd: root }));
    // The list of models lies beside the page; the weights do not: where they are not served, their URLs are used.
    fs.mkdirSync(path.join(pageDist, 'models'), { recursive: true });
    fs.copyFileSync(path.join(models, 'registry.json'), path.join(pageDist, 'models', 'registry.json'));
  });
}
