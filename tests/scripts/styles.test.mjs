// The page's style sheets know start and end, not left and right, so that right-to-left languages need no second set.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root } from '../../scripts/paths.mjs';

const PHYSICAL =
  /(?:^|[\s;{])(?:(?:margin|padding|border)-(?:left|right)[\w-]*|left|right|border-(?:top|bottom)-(?:left|right)-radius)\s*:|(?:text-align|float|clear|caption-side)\s*:\s*(?:left|right)|(?:transform-origin|background-position|object-position)\s*:[^;}]*\b(?:left|right)\b|-gradient\(\s*to (?:left|right)|translateX\(/;
/** Shorthands whose second and fourth values are right and left; corners, whose order goes round. */
const SIDES = /(?:^|[\s;{])(margin|padding|inset|border-(?:width|style|color)|scroll-(?:margin|padding))\s*:([^;}]+)/g;
const CORNERS = /(?:^|[\s;{])border-radius\s*:([^;}]+)/g;

/** The values of a shorthand, with what is in brackets in one piece. */
function values(text) {
  let bare = text.replace(/!important/, '').trim();
  for (let inner = /\([^()]*\)/; inner.test(bare); ) bare = bare.replace(inner, (one) => one.replace(/[\s()]/g, '_'));
  return bare.split(/\s+/);
}

/** What of a style sheet knows left and right. */
function physical(css) {
  const bare = css.replace(/\/\*[\s\S]*?\*\//g, '');
  const found = PHYSICAL.exec(bare)?.slice(0, 1) ?? [];
  for (const [whole, , text] of bare.matchAll(SIDES)) {
    const [, right, , left] = values(text);
    if (left !== undefined && left !== right) found.push(whole);
  }
  for (const [whole, text] of bare.matchAll(CORNERS)) {
    const [a, b = a, c = a, d = b] = values(text);
    if (a !== b || c !== d) found.push(whole);
  }
  return found;
}

test('the rule finds left and right', () => {
  for (const wrong of [
    'a { margin-left: 1px }',
    'a {\n  right: 0;\n}',
    'a { text-align: right }',
    'a { margin: 0 1px 0 2px }',
    'a { inset: 0 auto 0 calc(1px + (2px * 3)); }',
    'a { border-radius: 4px 0 0 4px }',
    'a { transform-origin: top left }',
    'a { background: linear-gradient(to right, red, blue) }',
    'a { transform: translateX(4px) }',
  ])
    assert.notDeepEqual(physical(wrong), [], wrong);
  for (const right of [
    'a { margin-inline-start: 0; text-align: start; padding: env(safe-area-inset-right) }',
    'a { margin: 0 calc(1px + 2px) 3px calc(1px + 2px); padding: 1px 2px 3px; border-radius: 4px 4px 0 0 }',
    '/* left: of all */ a { inset: 0 auto }',
  ])
    assert.deepEqual(physical(right), [], right);
});

test('style sheets have neither', () => {
  const files = fs
    .readdirSync(path.join(root, 'www/src'), { recursive: true })
    .filter((name) => String(name).endsWith('.css'));
  assert.ok(files.length > 5);
  for (const name of files)
    assert.deepEqual(physical(fs.readFileSync(path.join(root, 'www/src', name), 'utf8')), [], name);
});
