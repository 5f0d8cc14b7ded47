// The page's style sheets know start and end, not left and right, so that right-to-left languages need no second set.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root } from '../../scripts/paths.mjs';

const PHYSICAL =
  /(?:^|[\s;{])(?:(?:margin|padding|border)-(?:left|right)[\w-]*|left|right|border-(?:top|bottom)-(?:left|right)-radius)\s*:|(?:text-align|float|clear)\s*:\s*(?:left|right)/;

test('the rule finds left and right', () => {
  for (const wrong of ['a { margin-left: 1px }', 'a {\n  right: 0;\n}', 'a { text-align: right }'])
    assert.match(wrong, PHYSICAL);
  assert.doesNotMatch('a { margin-inline-start: 0; text-align: start; padding: env(safe-area-inset-right) }', PHYSICAL);
});

test('style sheets have neither', () => {
  const files = fs
    .readdirSync(path.join(root, 'www/src'), { recursive: true })
    .filter((name) => String(name).endsWith('.css'));
  assert.ok(files.length > 5);
  for (const name of files)
    assert.doesNotMatch(fs.readFileSync(path.join(root, 'www/src', name), 'utf8'), PHYSICAL, name);
});
