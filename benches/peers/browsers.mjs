// In Chromium on SwiftShader: Pagewise's npm package, and ONNX Runtime Web's WebGPU. A browser for each, so that neither
// page is in the background of the other.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { models, root } from '../../scripts/paths.mjs';
import { serve } from '../../scripts/server.mjs';
import { adapterReport, launch } from '../../tests/browser/launch.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));

/** The pages, what they import, and the models. */
export function servePages({ onnx }) {
  return serve({
    mounts: {
      '/js/': path.join(root, 'js'),
      '/models/': models,
      '/onnx/': onnx,
      '/peers/': path.join(here, 'node_modules'),
      '/': path.join(here, 'page'),
    },
  });
}

/** Opens a browser, imports a module of `page/` and calls its `load`. */
async function open(server, module, options) {
  const { browser, page, close } = await launch({ browser: 'chromium' });
  try {
    await page.goto(server.url);
    const info = (await adapterReport(page))?.info;
    if (!info) throw new Error('Chromium has no WebGPU adapter');
    const loaded = await page.evaluate(
      async (url, o) => {
        const { load } = await import(url);
        return load(o);
      },
      `/${module}`,
      options,
    );
    const adapter = [info.vendor, info.architecture, info.description].filter(Boolean).join(', ');
    const measure = (run) => page.evaluate((r) => globalThis.contestant.measure(r), run);
    return { adapter, browser: await browser.version(), ...loaded, measure, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export const pagewiseInPage = async (server, options, version) => ({
  name: 'Pagewise',
  version,
  ...(await open(server, 'pagewise.mjs', options)),
});

export const onnxInPage = async (server, options) => ({
  name: 'ONNX Runtime Web, WebGPU',
  ...(await open(server, 'onnx.mjs', options)),
});
