// The roofline benchmark in a browser, on a page of its own.
//
//   node benches/roofline/run.mjs [--browser chromium] [-- --contexts 128,1024 --formats Q4_0,Q8_0]
//   node benches/roofline/run.mjs --serve        # prints the page's address: open it in your own browser
import path from 'node:path';
import { parseArgs } from 'node:util';
import { root, target } from '../../scripts/paths.mjs';
import { ensureRust, TARGET } from '../../scripts/rust.mjs';
import { serve } from '../../scripts/server.mjs';
import { attempt, run, UserError } from '../../scripts/shell.mjs';
import { ensureWasmBindgen } from '../../scripts/wasm-bindgen.mjs';
import { launch } from '../../tests/browser/launch.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    browser: { type: 'string', default: 'chromium' },
    serve: { type: 'boolean', default: false },
  },
});

const out = path.join(target, 'roofline');
await build();
const mounts = { '/module/': out, '/': path.join(root, 'benches/roofline/page') };
// Isolated, because browsers round their clocks much less then.
const server = await serve({ mounts, headers: { 'cross-origin-embedder-policy': 'require-corp' } });
if (values.serve) {
  console.log(`${server.url}?${new URLSearchParams({ args: positionals.join(' ') })}`);
} else {
  const { page, browser, close } = await launch({ browser: values.browser });
  try {
    console.log(await browser.version());
    await page.goto(`${server.url}?${new URLSearchParams({ args: positionals.join(' ') })}`);
    await page.waitForFunction(() => globalThis.isDone, { timeout: 0 });
    console.log(await page.evaluate(() => document.querySelector('pre').textContent));
  } finally {
    await close();
    await server.close();
  }
}

async function build() {
  await ensureRust();
  const bindgen = await ensureWasmBindgen();
  const args = ['build', '--release', '--target', TARGET, '--bench', 'roofline', '--message-format', 'json'];
  const { code, output } = await attempt('cargo', args, { cwd: root, quiet: true });
  if (code !== 0) throw new UserError('the benchmark does not build', `run cargo ${args.slice(0, 6).join(' ')}`);
  const messages = output.split('\n').filter((line) => line.startsWith('{'));
  const built = messages.map((line) => JSON.parse(line)).find((message) => message.target?.name === 'roofline');
  const flags = ['--target', 'web', '--out-name', 'roofline', '--out-dir', out];
  await run(path.join(bindgen, 'wasm-bindgen'), [...flags, built.filenames[0]]);
}
