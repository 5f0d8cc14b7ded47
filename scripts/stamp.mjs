// Skips work whose inputs have not changed. A stamp file holds the hash of the inputs that its output was made from.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { root, stamps } from './paths.mjs';

const IGNORED = new Set(['node_modules', 'dist', 'wasm', 'target', '.git']);

/** Every file below the given files and folders (relative to the repository), sorted. */
export function filesBelow(paths) {
  const files = [];
  const visit = (relative) => {
    const absolute = path.join(root, relative);
    const info = fs.statSync(absolute, { throwIfNoEntry: false });
    if (info?.isFile()) files.push(relative);
    if (!info?.isDirectory()) return;
    for (const name of fs.readdirSync(absolute)) if (!IGNORED.has(name)) visit(path.join(relative, name));
  };
  paths.forEach(visit);
  return files.sort();
}

/** A hash of the names and contents of files, and of whatever else decides the output (`extra`). */
export function fingerprint(paths, extra = '') {
  const hash = crypto.createHash('sha256').update(extra);
  for (const file of filesBelow(paths)) hash.update(`\0${file}\0`).update(fs.readFileSync(path.join(root, file)));
  return hash.digest('hex');
}

/** Whether an output is there and was made from this fingerprint. */
export function isCurrent(name, print, output) {
  const file = path.join(stamps, name);
  return fs.existsSync(output) && fs.existsSync(file) && fs.readFileSync(file, 'utf8') === print;
}

/** Does `work` unless its stamp says that it was done for this fingerprint and its output is still there. */
export async function whenChanged(name, print, output, work) {
  if (isCurrent(name, print, output)) return false;
  const file = path.join(stamps, name);
  fs.rmSync(file, { force: true });
  await work();
  fs.mkdirSync(stamps, { recursive: true });
  fs.writeFileSync(file, print);
  return true;
}
