// npm test | npm run test:quick | npm run test:long: sets up, then runs every section and counts.
//
//   --quick        no browsers          --long   also what takes minutes: long prompts, all golden tokens
//   --only TEXT    sections whose name contains TEXT

import { setUp } from './setup.mjs';
import { main, seconds, step, UserError } from './shell.mjs';
import { add, describe, none } from './tally.mjs';

async function runSection({ name, run }) {
  const start_ms = Date.now();
  console.log(`\n=== ${name}`);
  let counts;
  try {
    counts = await run();
  } catch (error) {
    console.error(error instanceof UserError ? `${error.message}\nwhat to do: ${error.hint}` : error);
    counts = { passed: 0, failed: 1, skipped: 0 };
  }
  const line = `${name}: ${describe(counts)} in ${seconds(start_ms)}`;
  console.log(line);
  return { line, counts };
}

await main(async () => {
  const args = process.argv.slice(2);
  const quick = args.includes('--quick');
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : '';
  // The long cases are ordinary tests that look at this variable.
  if (args.includes('--long')) process.env.PAGEWISE_LONG = '1';

  const start_ms = Date.now();
  await step('set-up', () => setUp({ browsers: !quick }));
  // Imported now because finding its tools needs the npm packages.
  const { sections } = await import('./sections.mjs');
  const chosen = sections().filter((section) => section.name.includes(only) && !(quick && section.browsers));

  const results = [];
  for (const section of chosen) results.push(await runSection(section));
  const total = results.reduce((sum, { counts }) => add(sum, counts), none());
  console.log(`\n=== summary (${seconds(start_ms)})`);
  for (const { line } of results) console.log(line);
  console.log(describe(total));
  if (total.failed > 0) process.exitCode = 1;
});
