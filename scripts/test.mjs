// npm test | npm run test:quick | npm run test:long: sets up, then runs every section and counts.
//
//   --quick        no browsers          --long   also what takes minutes: long prompts, all golden tokens
//   --only TEXT    sections whose name contains TEXT
//
// What a section prints is shown when it has ended, whole; while it runs it is in target/test-output.
import fs from 'node:fs';
import path from 'node:path';
import { root } from './paths.mjs';
import { setUp } from './setup.mjs';
import { main, seconds, step, UserError, withOutput } from './shell.mjs';
import { add, describe, none } from './tally.mjs';

async function countsOf(run, write) {
  try {
    return await run();
  } catch (error) {
    const text = error instanceof UserError ? `${error.message}\nwhat to do: ${error.hint}` : error.stack;
    write(`${text}\n`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

async function runSection({ name, run }) {
  const file = path.join(root, 'target', 'test-output', `${name.replaceAll(/\W+/g, '-')}.txt`);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const output = fs.openSync(file, 'w');
  const write = (chunk) => void fs.writeSync(output, chunk);
  const start_ms = Date.now();
  const counts = await withOutput(write, () => countsOf(run, write));
  fs.closeSync(output);
  const line = `${name}: ${describe(counts)} in ${seconds(start_ms)}`;
  process.stdout.write(`\n=== ${name}\n${fs.readFileSync(file, 'utf8')}${line}\n`);
  return { line, counts };
}

/** Runs what is `chosen` of a plan's sections; answers their results in the plan's order. */
async function runSections({ first, lanes }, chosen) {
  const ends = new Map();
  const inOrder = async (sections) => {
    const results = [];
    for (const section of sections.filter(chosen)) {
      await ends.get(section.after)?.ended;
      results.push(await runSection(section));
      ends.get(section.name).end();
    }
    return results;
  };
  for (const { name } of [first, ...lanes].flat().filter(chosen)) {
    let end;
    ends.set(name, { ended: new Promise((resolve) => (end = resolve)), end: () => end() });
  }
  const results = await inOrder(first);
  return [...results, ...(await Promise.all(lanes.map(inOrder))).flat()];
}

await main(async () => {
  const args = process.argv.slice(2);
  const browsers = !args.includes('--quick');
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : '';
  // The long cases are ordinary tests that look at this variable.
  if (args.includes('--long')) process.env.PAGEWISE_LONG = '1';

  const start_ms = Date.now();
  await step('set-up', () => setUp({ browsers }));
  // Imported now because finding its tools needs the npm packages.
  const { sections } = await import('./sections.mjs');
  const results = await runSections(sections({ browsers }), ({ name }) => name.includes(only));
  const total = results.reduce((sum, { counts }) => add(sum, counts), none());
  console.log(`\n=== summary (${seconds(start_ms)})`);
  for (const { line } of results) console.log(line);
  console.log(describe(total));
  if (total.failed > 0) process.exitCode = 1;
});
