// node scripts/lighthouse.mjs [runs]: Lighthouse on the built page, served here under a folder; a median below 95 fails.
//
// A visitor has a GPU, so the browser gets a software one, which takes the processor that the page is drawn with. What of a
// figure is the page's shows beside an empty page that asks for an adapter, measured in turn with it.
// Lighthouse comes through npx when it is asked for: it is not needed to build or to test.
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
const NUM_RUNS = 5;
const BASE = '/some/base/';
const EMPTY = '/empty/';
const EMPTY_PAGE =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>Empty</title>' +
  '<meta name="viewport" content="width=device-width"><p>Empty<script>navigator.gpu?.requestAdapter()</script></html>';

/** Serves text compressed, as hosts of static files do, and the empty page. */
function compressed(request, response) {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (pathname === EMPTY) {
    response.writeHead(200, { 'content-type': 'text/html' }).end(EMPTY_PAGE);
    return true;
  }
  const file = path.join(pageDist, pathname.slice(BASE.length) || 'index.html');
  const type = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }[path.extname(file)];
  if (!type || !request.url.startsWith(BASE) || !fs.existsSync(file)) return false;
  const cache = file.includes('assets') ? 'max-age=31536000, immutable' : 'no-cache';
  response.writeHead(200, { 'content-type': type, 'content-encoding': 'br', 'cache-control': cache });
  response.end(zlib.brotliCompressSync(fs.readFileSync(file)));
  return true;
}

/** One run on a page; answers Lighthouse's report. */
async function measure(url, categories) {
  const out = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'pagewise-')), 'report.json');
  const flags = '--headless=new --no-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader';
  const args = ['--yes', LIGHTHOUSE, url, '--quiet', '--output=json', `--output-path=${out}`];
  args.push(`--only-categories=${categories.join()}`, `--chrome-flags=${flags}`);
  const env = { ...process.env, CHROME_PATH: await ensureBrowser('chromium') };
  await new Promise((resolve, reject) => {
    spawn('npx', args, { env, stdio: 'inherit' }).on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`Lighthouse ended with ${code}`)),
    );
  });
  return { ...JSON.parse(fs.readFileSync(out, 'utf8')), out };
}

/** What a run says in a line; times are those of a slow phone that Lighthouse simulates. */
function summary({ categories, audits }) {
  const ms = (id) => `${Math.round(audits[id].numericValue)} ms`;
  return (
    `performance ${score(categories.performance)}: first paint ${ms('first-contentful-paint')}, ` +
    `largest ${ms('largest-contentful-paint')}, blocked ${ms('total-blocking-time')}, longest task ${ms('max-potential-fid')}`
  );
}

const score = (category) => Math.round(category.score * 100);

await main(async () => {
  const server = await serve({ mounts: { [BASE]: pageDist }, intercept: compressed });
  const numRuns = Number(process.argv[2] ?? NUM_RUNS);
  const reports = [];
  try {
    for (let run = 0; run < numRuns; run += 1) {
      say(`empty page, ${summary(await measure(`${server.url}${EMPTY.slice(1)}`, ['performance']))}`);
      reports.push(await measure(`${server.url}${BASE.slice(1)}`, CATEGORIES));
      say(`this page,  ${summary(reports.at(-1))}`);
    }
  } finally {
    await server.close();
  }
  const byScore = reports.sort((a, b) => a.categories.performance.score - b.categories.performance.score);
  const { categories, audits, out } = byScore[Math.floor(byScore.length / 2)];
  for (const name of CATEGORIES) say(`${name}: ${score(categories[name])}`);
  for (const { id, title, score: part, displayValue = '' } of Object.values(audits)) {
    if (part !== null && part < 0.9) say(`  ${id} ${part}: ${title} ${displayValue}`);
  }
  const low = CATEGORIES.filter((name) => score(categories[name]) < MIN_SCORE);
  if (low.length > 0) throw new UserError(`below ${MIN_SCORE}: ${low.join(', ')}`, `see the report, ${out}`);
});
