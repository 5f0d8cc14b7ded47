import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstLoad } from '../../scripts/page-size.mjs';

test('the first load is the page and its chat, with all that they import at once', () => {
  const manifest = {
    'index.html': {
      file: 'index.js',
      css: ['index.css'],
      imports: ['_shared.js'],
      dynamicImports: ['_chat.js', 'src/labs/cache/view.tsx', 'src/state/engine.ts'],
    },
    '_shared.js': { file: 'shared.js', imports: ['index.html'] },
    '_chat.js': {
      file: 'chat.js',
      css: ['chat.css'],
      imports: ['_markdown.js'],
      dynamicImports: ['src/chat/languages.ts'],
    },
    '_markdown.js': { file: 'markdown.js' },
    'src/chat/languages.ts': { file: 'languages.js' },
    'src/labs/cache/view.tsx': { file: 'cache.js' },
    'src/state/engine.ts': { file: 'engine.js' },
  };
  const expected = ['index.js', 'index.css', 'shared.js', 'chat.js', 'chat.css', 'markdown.js'];
  assert.deepEqual(firstLoad(manifest).sort(), expected.sort());
});
