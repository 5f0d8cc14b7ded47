// npm packages of the workspaces js/ and www/ and of the tools here.
import fs from 'node:fs';
import path from 'node:path';
import { root } from './paths.mjs';
import { attempt, run, say, UserError } from './shell.mjs';
import { fingerprint, whenChanged } from './stamp.mjs';

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/** Runs `npm ci` when the lock file or a manifest changed since the last time. */
export async function ensurePackages() {
  const print = fingerprint(['package.json', 'package-lock.json', 'js/package.json', 'www/package.json']);
  await whenChanged('packages', print, path.join(root, 'node_modules', 'binaryen'), async () => {
    say('npm packages');
    const flags = ['--no-audit', '--no-fund', '--loglevel=error'];
    const clean = await attempt(npm, ['ci', ...flags], { cwd: root });
    if (clean.code === 0) return;
    // A manifest that is newer than the lock file, while somebody works on it.
    say('npm ci failed; trying npm install');
    await run(npm, ['install', ...flags], {
      cwd: root,
      hint: 'check that the npm registry can be reached, then run this again',
    });
  });
}

/**
 * The JavaScript file behind a package's command, to be started with `node`: works the same on every system. `base` is
 * the workspace whose version is meant.
 */
export function packageBin(name, command = name, base = root) {
  const candidates = [base, root].map((folder) => path.join(folder, 'node_modules', name));
  const folder = candidates.find((candidate) => fs.existsSync(candidate));
  if (!folder) throw new UserError(`the npm package ${name} is not installed`, 'npm install');
  const { bin } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return path.join(folder, typeof bin === 'string' ? bin : bin[command]);
}
