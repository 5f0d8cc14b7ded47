// The example in README.md runs as it is written.
//
// BROWSER=chromium|firefox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { models, pageDist, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { launch } from './launch.mjs';

const BROWSER = process.env.BROWSER ?? 'chromium';

/** The only code block in JavaScript, its import resolved as a bundler would. */
function example() {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  assert.equal(blocks.length, 1);
  const code = blocks[0].replace("from 'pagewise'", "from '/js/dist/index.js'");
  return { code, answer: /console\.log\(answer\); \/\/ (.*)$/m.exec(code)[1] };
}

test(`the example of README.md in ${BROWSER}`, async () => {
  const { code, answer } = example();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-readme-'));
  fs.writeFileSync(path.join(folder, 'example.mjs'), `${code}\nglobalThis.isDone = true;\n`);
  fs.writeFileSync(
    path.join(folder, 'index.html'),
    '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module" src="example.mjs"></script>',
  );
  const mounts = { '/models/': models, '/js/': path.join(root, 'js'), '/example/': folder, '/': pageDist };
  const server = await serve({ mounts });
  const { page, problems, close } = await launch({ browser: BROWSER });
  try {
    const printed = [];
    page.on('console', (message) => printed.push(message.text()));
    await page.goto(`${server.url}example/`);
    await page.waitForFunction(() => globalThis.isDone === true);
    assert.ok(printed.includes(answer), `${answer} is not among ${JSON.stringify(printed)}`);
    assert.ok(
      printed.some((line) => /^ready \d+ \d+$/.test(line)),
      'progress up to ready',
    );
    assert.deepEqual(problems, []);
  } finally {
    await close();
    await server.close();
    fs.rmSync(folder, { recursive: true });
  }
});
