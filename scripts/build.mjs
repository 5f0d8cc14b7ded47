// npm run build: the page as plain static files in www/dist, and the npm package in js/.

import { buildPackage, buildPage } from './page.mjs';
import { checkPageSize } from './page-size.mjs';
import { pageDist } from './paths.mjs';
import { main, say } from './shell.mjs';
import { checkWasmSize } from './wasm.mjs';

await main(async () => {
  await buildPackage();
  await buildPage();
  checkWasmSize();
  checkPageSize();
  say(`built: ${pageDist}`);
});
