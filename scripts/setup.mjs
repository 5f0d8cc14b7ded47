// Everything that the tests need on this machine, installed where it is missing.
import { ensureBrowser, ensureChromedriver, ensureSoftwareVulkan } from './browsers.mjs';
import { ensureLlamaServer } from './llama-server.mjs';
import { allModels, ensureModel } from './models.mjs';
import { ensurePackages } from './packages.mjs';
import { ensureRust, ensureRustComponents } from './rust.mjs';
import { ensureWasmBindgen } from './wasm-bindgen.mjs';

/** Sets up; `browsers` says whether the tests in browsers will run. Answers the folder of wasm-bindgen's programs. */
export async function setUp({ browsers }) {
  await ensureRust();
  await ensureRustComponents();
  await ensurePackages();
  await ensureSoftwareVulkan();
  for (const model of allModels()) await ensureModel(model);
  await ensureLlamaServer();
  if (!browsers) return;
  await ensureBrowser('chromium');
  await ensureBrowser('firefox');
  process.env.CHROMEDRIVER = await ensureChromedriver();
  process.env.PATH = `${await ensureWasmBindgen()}:${process.env.PATH}`;
}
