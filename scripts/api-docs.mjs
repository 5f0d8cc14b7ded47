// docs/api.md: everything that the npm package exports, from its declarations and their comments.
//
//   npm run docs     writes it; `npm test` checks that it is what the sources say
//
// Declarations are tsc's own output, so they are what a consumer gets; a documentation tool would need another compiler
// beside ours.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildTypes } from './page.mjs';
import { jsDist, root } from './paths.mjs';
import { main, UserError } from './shell.mjs';

const FILE = path.join(root, 'docs', 'api.md');
/** Entry points in the order of the document; what an entry exports again from an earlier one is not repeated. */
const ENTRIES = {
  pagewise: 'index',
  'pagewise/remote': 'remote',
  'pagewise/prompt-api': 'prompt-api',
  'pagewise/ai-sdk': 'ai-sdk',
};
const INTRO = `# API

Everything that the npm package exports, by the path that it is imported from. Generated from the sources by \`npm run docs\`:
mend comments there. [js/README.md](../js/README.md) introduces it, [recipes.md](recipes.md) has it at work.

\`pagewise/worker\`, \`pagewise/shared-worker\`, \`pagewise/service-worker\`, \`pagewise/wasm\` and \`pagewise/grammar\` are files for
bundlers and sites to find, without exports of their own.
`;
const DECLARATION = /^export (?:declare )?(?:abstract )?(class|interface|type|function|const) (\w+)/;

const parsed = new Map();

/** The comments, declarations and re-exports of one file. */
function parse(stem) {
  if (parsed.has(stem)) return parsed.get(stem);
  const file = { comment: '', own: new Map(), from: [] };
  parsed.set(stem, file);
  let comment = null;
  // Top-level statements begin in the first column, and so do the lines that end those of several lines.
  for (const text of statements(fs.readFileSync(path.join(jsDist, `${stem}.d.ts`), 'utf8'))) {
    if (text.startsWith('/**')) {
      if (text.includes('@module')) file.comment = proseOf(text);
      comment = proseOf(text);
      continue;
    }
    const again = /^export (?:type )?(\*|\{[\s\S]*\}) from '\.\/(.+)\.js';/.exec(text);
    const [, kind, name] = DECLARATION.exec(text) ?? [];
    if (again) file.from.push({ names: namesIn(again[1]), stem: again[2] });
    else if (kind) {
      const known = file.own.get(name);
      // Overloads follow each other.
      if (known) known.code += `\n${text}`;
      else file.own.set(name, { name, kind, comment: comment ?? '', code: text });
    }
    comment = null;
  }
  return file;
}

function statements(source) {
  const found = [];
  const lines = [];
  for (const line of source.trimEnd().split('\n')) {
    const begins = /^[^\s})*]/.test(line) && lines.length > 0 && !lines.at(-1).startsWith('/*');
    if (begins) found.push(lines.splice(0).join('\n'));
    lines.push(line);
    if (lines[0].startsWith('/**') && line.endsWith('*/')) found.push(lines.splice(0).join('\n'));
  }
  return [...found, lines.join('\n')];
}

/** null for all of them. */
function namesIn(list) {
  if (list === '*') return null;
  const names = list.replace(/[{}]/g, '').split(',');
  return names.map((name) => name.replace(/\btype\b/, '').trim()).filter((name) => name !== '');
}

/** What a file exports, its own and others', in order. */
function exportsOf(stem) {
  const { own, from } = parse(stem);
  const others = from.flatMap(({ names, stem: other }) => {
    const all = exportsOf(other);
    return names === null ? all : names.map((name) => all.find((entry) => entry.name === name)).filter(Boolean);
  });
  return [...others, ...own.values()];
}

/** A comment without its stars and without its examples' module tag. */
function proseOf(text) {
  const lines = text.slice(3, -2).split('\n');
  return lines
    .map((line) => line.replace(/^ ?\* ?/, '').trimEnd())
    .join('\n')
    .replace('@module', '')
    .trim();
}

/** Links to what is on this page; other links are names. */
function linked(prose, known) {
  return prose.replace(/\{@link (\w+)((?:\.\w+)*)\}/g, (_, name, rest) =>
    known.has(name) ? `[\`${name}${rest}\`](#${name.toLowerCase()})` : `\`${name}${rest}\``,
  );
}

/** A declaration as it is read: without words that matter to compilers only, and without private members. */
function shown(code) {
  return code
    .replace(/^export (declare )?/gm, '')
    .replace(/^ {4}(#private|private constructor\(.*\));\n/gm, '')
    .replace(/\{@link ([\w.]+)\}/g, '$1')
    .replace(/^ +/gm, (indent) =>
      ' '.repeat(indent.length % 2 === 0 ? indent.length / 2 : (indent.length - 1) / 2 + 1),
    );
}

/** What can be called or read comes before types. */
const rank = ({ kind }) => (['class', 'function', 'const'].includes(kind) ? 0 : 1);

/** The document. */
export function renderApi() {
  parsed.clear();
  const seen = new Set();
  const entries = Object.entries(ENTRIES).map(([name, stem]) => {
    const items = exportsOf(stem).filter((item) => !seen.has(item.name) && seen.add(item.name));
    return { name, comment: parse(stem).comment, items: items.sort((a, b) => rank(a) - rank(b)) };
  });
  const known = new Set(seen);
  const parts = entries.map(({ name, comment, items }) => {
    const first = items.filter((item) => rank(item) === 0).map((item) => `[${item.name}](#${item.name.toLowerCase()})`);
    const head = `## ${name}\n\n${linked(comment, known)}\n\n${first.join(', ')}, and types.\n`;
    const body = items.map(
      (item) => `### ${item.name}\n\n${linked(item.comment, known)}\n\n\`\`\`ts\n${shown(item.code)}\n\`\`\`\n`,
    );
    return [head, ...body].join('\n');
  });
  return [INTRO, ...parts].join('\n');
}

/** Throws if docs/api.md is not what the sources say. */
export async function checkApi() {
  await buildTypes();
  if (fs.existsSync(FILE) && fs.readFileSync(FILE, 'utf8') === renderApi()) return;
  throw new UserError('docs/api.md is not what the sources say', 'npm run docs');
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await main(async () => {
    await buildTypes();
    fs.writeFileSync(FILE, renderApi());
  });
}
