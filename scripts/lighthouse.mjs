// node scripts/lighthouse.mjs: Lighthouse on the built page, served here under a folder; fails below 95.
// A visitor has a GPU, so the browser gets a software one. Lighthouse comes through npx when it is asked for: it is not needed to build or to test.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import { ensureBrowser } from './browsers.mjs';
import { pageDist } from './paths.mjs';
import { serve } from './server.mjs';
import { main, say, UserError } from './shell.mjs';

const LIGHTHOUSE = 'lighthouse@13.5.0';
const CATEGORIES = ['performance', 'accessibility', 'best-practices'];
const MIN_SCORE = 95;
const BASE = '/some/base/';

/** Serves text compressed, as hosts of static files do. */
function compressed(request, response) {
  const file = path.join(
    pageDist,
    new URL(request.url, 'http://localhost').pathname.slice(BASE.length) || 'index.html',
  );
  const type = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }[path.extname(file)];
  if (!type || !request.url.startsWith(BASE) || !fs.existsSync(file)) return false;
  const cache = file.includes('assets') ? 'max-age=31536000, immutable' : 'no-cache';
  response.writeHead(200, { 'content-type': type, 'content-encoding': 'br', 'cache-control': cache });
  response.end(zlib.brotliCompressSync(fs.readFileSync(file)));
  return true;
}

await main(async () => {
  const server = await serve({ mounts: { [BASE]: pageDist }, intercept: compressed });
  const out = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-')), 'report.json');
  try {
    const args = [
      '--yes',
      LIGHTHOUSE,
      `${server.url}${BASE.slice(1)}`,
      '--quiet',
      '--output=json',
      `--output-path=${out}`,
    ];
    args.push(
      `--only-categories=${CATEGORIES.join()}`,
      '--chrome-flags=--headless=new --no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader',
    );
    const env = { ...process.env, CHROME_PATH: await ensureBrowser('chromium') };
    await new Promise((resolve, reject) => {
      spawn('npx', args, { env, stdio: 'inherit' }).on('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`${code}`)),
      );
    });
  } finally {
    await server.close();
  }
  const { categories, audits } = JSON.parse(fs.readFileSync(out, 'utf8'));
  for (const name of CATEGORIES) say(`${name}: ${Math.round(categories[name].score * 100)}`);
  for (const { id, title, score, displayValue = '' } of Object.values(audits)) {
    if (score !== null && score < 0.9) say(`  ${id} ${score}: ${title} ${displayValue}`);
  }
  const low = CATEGORIES.filter((name) => categories[name].score * 100 < MIN_SCORE);
  if (low.length > 0) throw new UserError(`below ${MIN_SCORE}: ${low.join(', ')}`, `see the report, ${out}`);
});
