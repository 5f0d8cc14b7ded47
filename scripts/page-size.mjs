// What a first visit loads before the engine: script and style of the frame and the chat, as a server would send them.
import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { pageDist } from './paths.mjs';
import { say, UserError } from './shell.mjs';

/** Brotli, script and style together. */
export const MAX_FIRST_LOAD_BYTES = 250_000;

/** What the page imports later than its first view, the chat: labs, dialogs, the engine. */
const LATER = /^src\/(labs|ui|state)\//;

/** Files that the page and then the chat need, by Vite's manifest: what is imported at once, without what comes later. */
export function firstLoad(manifest) {
  const files = new Set();
  const seen = new Set();
  const visit = (key) => {
    const chunk = manifest[key];
    if (chunk === undefined || seen.has(key)) return;
    seen.add(key);
    for (const file of [chunk.file, ...(chunk.css ?? [])]) files.add(file);
    for (const imported of chunk.imports ?? []) visit(imported);
  };
  visit('index.html');
  // The chat's chunk has no name of its own in the manifest where others share it.
  for (const key of manifest['index.html']?.dynamicImports ?? []) if (!LATER.test(key)) visit(key);
  return [...files];
}

/** Fails when a first visit loads too much. */
export function checkPageSize() {
  const manifest = JSON.parse(fs.readFileSync(path.join(pageDist, '.vite', 'manifest.json'), 'utf8'));
  const files = firstLoad(manifest);
  const bytes = files.reduce(
    (sum, file) => sum + brotliCompressSync(fs.readFileSync(path.join(pageDist, file))).length,
    0,
  );
  // A page without its chat would be small, and a mistake of this script.
  if (files.length < 4 || bytes > MAX_FIRST_LOAD_BYTES) {
    throw new UserError(
      `a first visit loads ${bytes} bytes of script and style, ${MAX_FIRST_LOAD_BYTES} are allowed`,
      'import what is not needed at once when it is needed: `npx vite build` in www/ lists the files',
    );
  }
  say(`first load: ${(bytes / 1000).toFixed(1)} kB of script and style (Brotli) in ${files.length} files`);
}
