// Whoever uses the npm package: the packed tarball, unpacked where npm would put it, built by each tool's own defaults.
//
//   node scripts/consumers.mjs     builds them all in target/consumers
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageBin } from './packages.mjs';
import { buildPackage } from './page.mjs';
import { models, root } from './paths.mjs';
import { attempt, main, run, step, UserError } from './shell.mjs';
import { fingerprint, whenChanged } from './stamp.mjs';

const SOURCES = 'tests/consumers';
/** Their copies: outside of the sources, because tools write beside what they read. */
export const consumers = path.join(root, 'target', 'consumers');
const NPM = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const TOOLS = ['package.json', 'package-lock.json'];
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/**
 * What builds a consumer and what it makes. esbuild takes no worker and no asset by its URL, so both are named: that is its
 * whole configuration.
 */
const BUILDS = {
  esbuild: {
    command: [
      'esbuild',
      ...['main.js', 'worker=pagewise/worker', 'shared-worker=pagewise/shared-worker'],
      ...['pagewise_bg=pagewise/wasm', 'grammar_bg=pagewise/grammar'],
      ...['--bundle', '--format=esm', '--loader:.wasm=copy', '--outdir=dist'],
    ],
    output: 'dist/main.js',
  },
  next: { command: ['next', 'build'], output: '.next/BUILD_ID' },
  vite: { command: ['vite', 'build'], output: 'dist/index.html' },
  // The version that builds our own page: its workers cannot be split into several files.
  'vite-older': {
    command: [process.execPath, packageBin('vite', 'vite', path.join(root, 'www')), 'build'],
    output: 'dist/index.html',
  },
  webpack: { command: ['webpack', '--mode', 'production'], output: 'dist/main.js' },
};

/** The program of one of the tools; a path is one already. */
export function tool(name) {
  if (path.isAbsolute(name)) return name;
  return path.join(consumers, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name);
}

/** The environment of the tools: none of them reports to anybody. */
export const toolEnv = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', CI: '1' };

/** Installs the tools unless the lock file is the one they were installed from. */
async function installTools() {
  fs.mkdirSync(consumers, { recursive: true });
  const files = TOOLS.map((name) => `${SOURCES}/${name}`);
  const print = fingerprint(files);
  await whenChanged('consumers', print, path.join(consumers, 'node_modules', 'vite'), async () => {
    for (const name of [...TOOLS, '.npmrc']) {
      const from = path.join(root, name === '.npmrc' ? name : `${SOURCES}/${name}`);
      fs.copyFileSync(from, path.join(consumers, name));
    }
    const hint = 'check that the npm registry can be reached, then run this again';
    await step('npm packages of the consumers', () => run(NPM, ['ci', ...QUIET], { cwd: consumers, hint }));
  });
  return print;
}

/** Packs the package and unpacks it among the tools' packages. Answers the tarball and its hash. */
async function installPackage() {
  await buildPackage();
  const packed = await attempt(NPM, ['pack', '--json', ...QUIET, '--pack-destination', consumers], {
    cwd: path.join(root, 'js'),
    quiet: true,
  });
  if (packed.code !== 0) throw new UserError(`npm pack failed: ${packed.output}`, 'npm run build');
  const tarball = path.join(consumers, /pagewise-[\w.+-]+\.tgz/.exec(packed.output)[0]);
  const hash = crypto.createHash('sha256').update(fs.readFileSync(tarball)).digest('hex');
  const folder = path.join(consumers, 'node_modules', 'pagewise');
  await whenChanged('consumers-package', hash, path.join(folder, 'package.json'), async () => {
    fs.rmSync(folder, { recursive: true, force: true });
    // Vite keeps what it bundled of a package by its version, which is the same as before.
    fs.rmSync(path.join(consumers, 'node_modules', '.vite'), { recursive: true, force: true });
    fs.mkdirSync(folder, { recursive: true });
    await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components', '1']);
  });
  return { tarball, hash };
}

/** Lays a consumer's files anew: nothing of an older build is left. */
function copySources(name) {
  const folder = path.join(consumers, name);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(path.join(root, SOURCES, name), folder, { recursive: true });
  return folder;
}

async function buildConsumer(name, { command: [program, ...args], output }, extra) {
  const print = fingerprint([`${SOURCES}/${name}`], `${extra} ${program} ${args.join(' ')}`);
  await whenChanged(`consumer-${name}`, print, path.join(consumers, name, output), () =>
    step(`consumer: ${name}`, async () => {
      const cwd = copySources(name);
      if (name === 'next') {
        // Its own server serves the model too.
        fs.mkdirSync(path.join(cwd, 'public', 'models'), { recursive: true });
        const model = 'tiny-llama-f16.gguf';
        fs.copyFileSync(path.join(models, model), path.join(cwd, 'public', 'models', model));
      }
      const { code, output: text } = await attempt(tool(program), args, { cwd, env: toolEnv, quiet: true });
      if (code !== 0 || !fs.existsSync(path.join(cwd, output))) throw new Error(`${name} (exit ${code}):\n${text}`);
    }),
  );
}

/** Builds every consumer, unless it is up to date; answers where the tarball is. */
export async function buildConsumers() {
  const tools = await installTools();
  const { tarball, hash } = await installPackage();
  for (const [name, build] of Object.entries(BUILDS)) await buildConsumer(name, build, `${tools} ${hash}`);
  for (const name of ['node', 'page', 'types']) copySources(name);
  return { tarball };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(buildConsumers);
