import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { documentOf } from './examples.js';

const DOCUMENTS = ['../../README.md', '../README.md', '../../docs/recipes.md', '../../docs/kv-cache.md'];
/** All that an example needs to be TypeScript: types of lists and parameters, and what it shows being refused. */
const TYPES: readonly (readonly [string, string])[] = [
  ['const messages = [', 'const messages: ChatRequestMessage[] = ['],
  ['const prefix = [', 'const prefix: ChatRequestMessage[] = ['],
  ['const system = {', 'const system: ChatRequestMessage = {'],
  ['const tools = [', 'const tools: ChatTool[] = ['],
  ['const results = ', 'const results: ChatRequestMessage[] = '],
  ['(content) {', '(content: string) {'],
  ['startWarm(engine) {', 'startWarm(engine: Engine) {'],
  ['const near = (a, b) =>', 'const near = (a: number[], b: number[]) =>'],
  ['const at = (time) =>', 'const at = (time: string): ChatRequestMessage[] =>'],
  ['const weather = ({ city }) =>', 'const weather = ({ city }: { city: string }) =>'],
  ['const functions = {', 'const functions: Record<string, typeof weather> = {'],
  ['    best_of: 3,', '    // @ts-expect-error\n    best_of: 3,'],
];
/** What the page has besides. */
const GLOBALS = `declare const LanguageModel: import('pagewise/prompt-api').LanguageModelStatic;
declare const SYSTEM_PROMPT: string;
`;

function asTypeScript(code: string): string {
  const body = TYPES.reduce((text, [plain, typed]) => text.replaceAll(plain, typed), code);
  const names = ['ChatRequestMessage', 'ChatTool', ...(/import .*\bEngine\b/.test(code) ? [] : ['Engine'])];
  return `import type { ${names.join(', ')} } from 'pagewise';\n${body}`;
}

test('every example compiles under TypeScript strict', { timeout: 120_000 }, async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  mkdirSync(path.join(root, 'target'), { recursive: true });
  const folder = mkdtempSync(path.join(root, 'target', 'examples-'));
  try {
    const codes = DOCUMENTS.flatMap((document) => documentOf(document).examples);
    for (const [plain] of TYPES) expect(codes.join('\n')).toContain(plain);
    codes.forEach((code, index) => {
      writeFileSync(path.join(folder, `${index}.ts`), asTypeScript(code));
    });
    writeFileSync(path.join(folder, 'globals.d.ts'), GLOBALS);
    const compilerOptions = { paths: { pagewise: ['../../js/src/index.ts'], 'pagewise/*': ['../../js/src/*.ts'] } };
    const include = ['*.ts', '../../js/src/wasm-module.d.ts'];
    const config = { extends: '../../js/tsconfig.json', compilerOptions, include };
    // Beyond `strict`, which is what is promised.
    Object.assign(compilerOptions, { noUncheckedIndexedAccess: false, noUnusedLocals: false });
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
    const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
    const run = promisify(execFile)(process.execPath, [tsc, '-p', folder, '--pretty', 'false']);
    expect(await run.then(() => '').catch(({ stdout }: { stdout: string }) => stdout)).toBe('');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
