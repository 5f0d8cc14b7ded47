// The sections of `npm test`, in order: cheap ones first. Each answers its counts; a check counts as one test.
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

/** `browsers: true` marks sections that open one; they are left out of `npm run test:quick`. */
export function sections() {
  const clippy = ['clippy', '--quiet'];
  const deny = ['--', '-D', 'warnings'];
  return [
    { name: 'rustfmt', run: check('cargo', ['fmt', '--check']) },
    {
      name: 'biome',
      run: check(...node([packageBin('@biomejs/biome', 'biome'), 'ci', '--error-on-warnings', '--colors=off'])),
    },
    { name: 'licences', run: checkThat(() => say(`${checkLicences()} dependencies`)) },
    { name: 'scripts', run: nodeTests(filesIn('tests/scripts', '.test.mjs')) },
    { name: 'clippy, native', run: check('cargo', [...clippy, '--all-targets', ...deny]) },
    { name: 'clippy, wasm32', run: check('cargo', [...clippy, '--target', TARGET, '--lib', ...wasmTests(), ...deny]) },
    { name: 'rustdoc', run: check('cargo', ['doc', '--quiet', '--no-deps', '--lib'], { RUSTDOCFLAGS: '-D warnings' }) },
    { name: 'cargo tests', run: cargoTests(['--', '--show-output']) },
    { name: 'npm package types', run: checkThat(buildTypes) },
    { name: 'API documentation', run: checkThat(checkApi) },
    { name: 'tsc, js', run: tsc('js') },
    { name: 'tsc, www', run: tsc('www') },
    { name: 'vitest, js', run: vitest('js') },
    { name: 'vitest, www', run: vitest('www') },
    { name: 'other servers', run: nodeTests(filesIn('tests/servers', '.test.mjs')) },
    {
      name: 'wasm build and size',
      browsers: true,
      run: checkThat(async () => {
        await buildPackage();
        checkWasmSize();
      }),
    },
    {
      name: 'page build and size',
      browsers: true,
      run: checkThat(async () => {
        await buildPage();
        checkPageSize();
      }),
    },
    {
      name: 'page states and accessibility',
      browsers: true,
      run: check(...node(['www/tests/screenshots.mjs', '--quick'])),
    },
    { name: 'consumers', browsers: true, run: nodeTests(['tests/consumers/consumers.test.mjs']) },
    ...(wasmTests().length > 0
      ? [
          {
            name: 'kernels in Chromium',
            browsers: true,
            run: cargoTests(['--target', TARGET, ...wasmTests()], { WASM_BINDGEN_TEST_TIMEOUT: '900' }),
          },
        ]
      : []),
    ...['chromium', 'firefox'].map((browser) => ({
      name: `page in ${browser}`,
      browsers: true,
      run: nodeTests(filesIn('tests/browser', '.test.mjs'), { BROWSER: browser }),
    })),
  ];
}
