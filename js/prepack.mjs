// Refuses to pack without what the build makes, and brings the documents that the README links.
import { existsSync } from 'node:fs';
import { layDocuments } from './pack-documents.mjs';

const needed = [
  'dist/index.js',
  'dist/index.d.ts',
  'dist/worker.js',
  'dist/shared-worker.js',
  'dist/service-worker.js',
  'wasm/pagewise.js',
  'wasm/pagewise_bg.wasm',
  'wasm/grammar.js',
  'wasm/grammar_bg.wasm',
];
const missing = needed.filter((file) => !existsSync(new URL(file, import.meta.url)));
if (missing.length > 0) {
  console.error(`missing: ${missing.join(', ')}; run "npm run build" in the repository first`);
  process.exit(1);
}
layDocuments();
