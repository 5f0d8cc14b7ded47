// Checks that every dependency, Rust and npm, may be used under a licence that deny.toml allows.
import fs from 'node:fs';
import path from 'node:path';
import { root } from './paths.mjs';
import { capture, UserError } from './shell.mjs';

/** Allowed in addition for npm packages that are tools: they are run here and never shipped. */
const TOOLS_ONLY = ['BlueOak-1.0.0', 'CC-BY-4.0', 'MIT-0', 'MPL-2.0', 'Python-2.0'];

function allowList() {
  const text = fs.readFileSync(path.join(root, 'deny.toml'), 'utf8');
  const list = /^\[licenses\]\s+allow = \[([^\]]*)\]/m.exec(text)[1];
  return [...list.matchAll(/"([^"]+)"/g)].map((match) => match[1]);
}

/** Whether an SPDX expression (OR, AND, WITH, parentheses; the old `/` means OR) can be met by the allowed licences. */
export function isAllowed(expression, allowed) {
  const tokens = expression.replaceAll('/', ' OR ').match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const single = () => {
    if (tokens[at] === '(') {
      at += 1;
      const inside = either();
      at += 1;
      return inside;
    }
    let name = tokens[at];
    at += 1;
    if (tokens[at] === 'WITH') {
      name = `${name} WITH ${tokens[at + 1]}`;
      at += 2;
    }
    return allowed.includes(name);
  };
  const chain = (word, next, join) => () => {
    let result = next();
    while (tokens[at] === word) {
      at += 1;
      const right = next();
      result = join(result, right);
    }
    return result;
  };
  const both = chain('AND', single, (a, b) => a && b);
  const either = chain('OR', both, (a, b) => a || b);
  return either() && at === tokens.length;
}

function rustPackages() {
  const text = capture('cargo', ['metadata', '--format-version', '1', '--locked'], { cwd: root, maxBuffer: 1 << 28 });
  if (text === null) throw new UserError('cargo metadata failed', 'run `cargo metadata --locked` to see why');
  return JSON.parse(text).packages.map(({ name, version, license }) => ({
    name: `crate ${name} ${version}`,
    license,
    tool: false,
  }));
}

function npmPackages() {
  const { packages } = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([folder, { link }]) => folder.includes('node_modules/') && !link)
    .map(([folder, { version, license, dev }]) => ({
      name: `npm ${folder.split('node_modules/').at(-1)} ${version}`,
      license,
      tool: dev === true,
    }));
}

/** Throws with the list of dependencies whose licence is missing or not allowed; answers how many were checked. */
export function checkLicences() {
  const allowed = allowList();
  const packages = [...rustPackages(), ...npmPackages()];
  const refused = packages.filter(
    ({ license, tool }) => !license || !isAllowed(license, tool ? [...allowed, ...TOOLS_ONLY] : allowed),
  );
  if (refused.length > 0) {
    const lines = refused.map(({ name, license }) => `  ${name}: ${license ?? 'no licence'}`);
    throw new UserError(
      `licences not allowed by deny.toml:\n${lines.join('\n')}`,
      'choose another dependency, or allow the licence in deny.toml after reading it',
    );
  }
  return packages.length;
}
