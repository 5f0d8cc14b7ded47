// Starts Chromium or Firefox with WebGPU on a software adapter, so that results are the same on every machine.
//
// Chromium brings SwiftShader (subgroups of 4, no f16); Firefox uses Mesa's lavapipe (f16, no subgroups, 128 MiB
// bindings). Between them they stand for both shader compilers, Tint and naga. PAGEWISE_GPU=hardware uses the real GPU.
//
//   node tests/browser/launch.mjs [chromium|firefox]     prints what the adapter offers
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';
import { ensureBrowser, ensureSoftwareVulkan, findLavapipe } from '../../scripts/browsers.mjs';
import { serve } from '../../scripts/server.mjs';

export const BROWSERS = ['chromium', 'firefox'];

/** Longest wait for anything on a page: software adapters are slow, and a test that hangs has to end. */
const WAIT_MS = 180_000;

/** Quiet start, no background traffic. */
const CHROMIUM_ARGS = [
  '--enable-unsafe-webgpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const FIREFOX_PREFS = {
  'dom.webgpu.enabled': true,
  'dom.webgpu.workers.enabled': true,
  'gfx.webgpu.ignore-blocklist': true,
};

async function options(browser) {
  const hardware = process.env.PAGEWISE_GPU === 'hardware';
  const common = {
    headless: process.env.PAGEWISE_HEADED === undefined,
    executablePath: await ensureBrowser(browser),
    protocolTimeout: 0,
  };
  if (browser === 'chromium') {
    const args = [...CHROMIUM_ARGS];
    if (!hardware) args.push('--use-webgpu-adapter=swiftshader');
    // Chromium's sandbox does not work for root, as in most containers.
    if (process.getuid?.() === 0) args.push('--no-sandbox');
    return { ...common, browser: 'chrome', args };
  }
  if (!hardware) await ensureSoftwareVulkan();
  const icd = hardware ? null : findLavapipe();
  const env = icd ? { ...process.env, VK_DRIVER_FILES: icd, VK_ICD_FILENAMES: icd } : process.env;
  return { ...common, browser: 'firefox', extraPrefsFirefox: FIREFOX_PREFS, env };
}

/**
 * Opens a browser ('chromium' or 'firefox') with one page. `problems` collects what a visitor would find in the
 * console: errors and uncaught exceptions.
 */
export async function launch({ browser: name }) {
  const browser = await puppeteer.launch(await options(name));
  const page = await browser.newPage();
  const problems = [];
  page.setDefaultTimeout(WAIT_MS);
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`console: ${message.text()}`);
    if (process.env.PAGEWISE_VERBOSE) console.log(`  [${name}] ${message.text()}`);
  });
  return { browser, page, problems, close: () => browser.close() };
}

/** What `navigator.gpu` offers on a page. */
export function adapterReport(page) {
  return page.evaluate(async () => {
    const adapter = await navigator.gpu?.requestAdapter();
    if (!adapter) return null;
    const pick = (object, names) => Object.fromEntries(names.map((name) => [name, object[name]]));
    const limits = Object.keys(Object.getPrototypeOf(adapter.limits));
    return {
      info: pick(adapter.info, [
        'vendor',
        'architecture',
        'device',
        'description',
        'isFallbackAdapter',
        'subgroupMinSize',
        'subgroupMaxSize',
      ]),
      features: [...adapter.features],
      language: [...navigator.gpu.wgslLanguageFeatures],
      limits: pick(adapter.limits, limits),
    };
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = await serve();
  for (const name of process.argv[2] ? [process.argv[2]] : BROWSERS) {
    const { browser, page, close } = await launch({ browser: name });
    // Any page of ours is a secure context, which WebGPU needs.
    await page.goto(`${server.url}models/registry.json`);
    console.log(await browser.version(), JSON.stringify(await adapterReport(page), null, 2));
    await close();
  }
  await server.close();
}
