// npm run dev: Vite's development server on the page's sources, with the models folder served beside them.
//
// Changes in www/src show at once. After a change in Rust, WGSL or js/src, `npm run build` in a second terminal.
import path from 'node:path';
import { defaultModel, ensureModel } from './models.mjs';
import { buildPackage } from './page.mjs';
import { models, root } from './paths.mjs';
import { serve } from './server.mjs';
import { main } from './shell.mjs';

await main(async () => {
  await buildPackage();
  await ensureModel(defaultModel());
  const files = await serve({ mounts: { '/models/': models } });
  const www = path.join(root, 'www');
  process.chdir(www);
  const { createServer } = await import('vite');
  // The model server answers to local names only, so the proxy speaks in its own name.
  const proxy = { '/models/': { target: files.url, changeOrigin: true } };
  const server = await createServer({ root: www, server: { host: '127.0.0.1', port: 8080, proxy } });
  await server.listen();
  server.printUrls();
});
