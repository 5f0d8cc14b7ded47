// The sections of `npm test`. Each answers its counts; a check counts as one test.
import fs from 'node:fs';
import path from 'node:path';
import { checkApi } from './api-docs.mjs';
import { checkLicences } from './licences.mjs';
import { packageBin } from './packages.mjs';
import { buildPackage, buildPage, buildTypes } from './page.mjs';
import { checkPageSize } from './page-size.mjs';
import { root } from './paths.mjs';
import { TARGET } from './rust.mjs';
import { attempt, say } from './shell.mjs';
import { fromCargo, fromNode, fromVitest, withExit } from './tally.mjs';
import { checkWasmSize } from './wasm.mjs';

const CLIPPY = ['clippy', '--quiet'];
const DENY = ['--', '-D', 'warnings'];
const PAGE = 'page build and size';
const ONE_PASSED = { passed: 1, failed: 0, skipped: 0 };

/** A command that has to succeed. */
const check =
  (program, args, env = {}) =>
  async () => {
    const { code } = await attempt(program, args, { cwd: root, env: { ...process.env, ...env } });
    return withExit(code === 0 ? ONE_PASSED : { ...ONE_PASSED, passed: 0 }, code);
  };

/** A JavaScript function that has to return. */
const checkThat = (work) => async () => {
  await work();
  return ONE_PASSED;
};

const node = (args) => [process.execPath, args];

const cargoTests =
  (args, env = {}) =>
  async () => {
    const { code, output } = await attempt('cargo', ['test', '--no-fail-fast', ...args], {
      cwd: root,
      env: { ...process.env, ...env },
    });
    return withExit(fromCargo(output), code);
  };

/** A test that waits without end fails after ten minutes. */
const nodeTests =
  (files, env = {}) =>
  async () => {
    const args = ['--test', '--test-reporter=spec', '--test-concurrency=1', '--test-timeout=600000', ...files];
    const { code, output } = await attempt(process.execPath, args, { cwd: root, env: { ...process.env, ...env } });
    return withExit(fromNode(output), code);
  };

const vitest = (workspace) => async () => {
  const folder = path.join(root, workspace);
  const file = path.join(root, 'target', `vitest-${workspace}.json`);
  fs.rmSync(file, { force: true });
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const args = [
    packageBin('vitest', 'vitest', folder),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${file}`,
  ];
  const { code } = await attempt(process.execPath, args, { cwd: folder });
  const counts = fs.existsSync(file)
    ? fromVitest(JSON.parse(fs.readFileSync(file, 'utf8')))
    : { passed: 0, failed: 1, skipped: 0 };
  return withExit(counts, code);
};

const filesIn = (folder, ending) =>
  fs
    .readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith(ending))
    .map((name) => path.join(folder, name));

/** Test binaries that `wasm-bindgen-test` runs in a browser: tests/*_wasm.rs. */
const wasmTests = () => filesIn('tests', '_wasm.rs').flatMap((file) => ['--test', path.basename(file, '.rs')]);

const tsc = (workspace) =>
  check(...node([packageBin('typescript', 'tsc', path.join(root, workspace)), '--noEmit', '-p', workspace]));

/** In this order, before anything else: what is quick, and what the rest needs. */
const first = () => [
  { name: 'rustfmt', run: check('cargo', ['fmt', '--check']) },
  {
    name: 'biome',
    run: check(...node([packageBin('@biomejs/biome', 'biome'), 'ci', '--error-on-warnings', '--colors=off'])),
  },
  { name: 'licences', run: checkThat(() => say(`${checkLicences()} dependencies`)) },
  { name: 'npm package types', run: checkThat(buildTypes) },
  { name: 'API documentation', run: checkThat(checkApi) },
  { name: 'tsc, js', run: tsc('js') },
  { name: 'tsc, www', run: tsc('www') },
];

const pageIn = (browser) => ({
  name: `page in ${browser}`,
  after: PAGE,
  run: nodeTests(filesIn('tests/browser', '.test.mjs'), { BROWSER: browser }),
});

const native = () => [
  { name: 'scripts', run: nodeTests(filesIn('tests/scripts', '.test.mjs')) },
  { name: 'clippy, native', run: check('cargo', [...CLIPPY, '--all-targets', ...DENY]) },
  { name: 'rustdoc', run: check('cargo', ['doc', '--quiet', '--no-deps', '--lib'], { RUSTDOCFLAGS: '-D warnings' }) },
  { name: 'cargo tests', run: cargoTests(['--', '--show-output']) },
  { name: 'vitest, js', run: vitest('js') },
  { name: 'vitest, www', run: vitest('www') },
  { name: 'other servers', run: nodeTests(filesIn('tests/servers', '.test.mjs')) },
];

const afterPage = () => [
  { name: 'consumers', after: PAGE, run: nodeTests(['tests/consumers/consumers.test.mjs']) },
  pageIn('firefox'),
];

const chromium = () => [
  {
    name: 'clippy, wasm32',
    run: check('cargo', [...CLIPPY, '--target', TARGET, '--lib', ...wasmTests(), ...DENY]),
  },
  {
    name: 'wasm build and size',
    run: checkThat(async () => {
      await buildPackage();
      checkWasmSize();
    }),
  },
  {
    name: PAGE,
    run: checkThat(async () => {
      await buildPage();
      checkPageSize();
    }),
  },
  {
    name: 'page states and accessibility',
    run: check(...node(['www/tests/screenshots.mjs', '--quick'])),
  },
  {
    name: 'kernels in chromium',
    run: cargoTests(['--target', TARGET, ...wasmTests()], { WASM_BINDGEN_TEST_TIMEOUT: '900' }),
  },
  pageIn('chromium'),
];

/**
 * The sections: `first` those that run alone, one by one; then the `lanes`, beside each other, because one compiles shaders or
 * links on one core while another waits for a network. `after` names a section, of another lane, that has to have ended.
 */
export function sections({ browsers }) {
  if (!browsers) return { first: [...first(), ...native()], lanes: [] };
  return { first: first(), lanes: [[...native(), ...afterPage()], chromium()] };
}
