// The documents in the package: those of docs/ that the README or another one of them links, beside it instead of above it.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const README = new URL('README.md', import.meta.url);
const SOURCES = new URL('../docs/', import.meta.url);
const COPIES = new URL('docs/', import.meta.url);

/** Names of documents behind links that begin with `prefix`. */
const linked = (text, prefix) => {
  const links = text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g);
  const paths = [...links].map(([, path]) => path).filter((path) => path.startsWith(prefix));
  return paths.map((path) => path.slice(prefix.length)).filter((name) => /^[\w-]+\.md$/.test(name));
};

/** Copies documents into the package, and has the README link the copies. */
export function layDocuments() {
  takeDocuments();
  const readme = readFileSync(README, 'utf8');
  mkdirSync(COPIES);
  const names = new Set(linked(readme, '../docs/'));
  // What a document links is added while the set is gone through.
  for (const name of names) {
    const text = readFileSync(new URL(name, SOURCES), 'utf8');
    for (const other of linked(text, '')) names.add(other);
    writeFileSync(new URL(name, COPIES), text.replaceAll('](../js/README.md', '](../README.md'));
  }
  replaceReadme(readme.replaceAll('](../docs/', '](docs/'));
}

/** Everything as it is in the repository; also after a pack that was cut. */
export function takeDocuments() {
  rmSync(COPIES, { recursive: true, force: true });
  replaceReadme(readFileSync(README, 'utf8').replaceAll('](docs/', '](../docs/'));
}

/** At once: tests read it meanwhile. */
function replaceReadme(text) {
  if (text === readFileSync(README, 'utf8')) return;
  const next = new URL('README.md.part', import.meta.url);
  writeFileSync(next, text);
  renameSync(next, README);
}
