/** Files to passages: structure, sizes, the same text once. */
import { describe, expect, it } from 'vitest';
import { decodeText } from '../../src/documents/decode';
import { dedupe, hashOf } from '../../src/documents/dedupe';
import { type PdfItem, pdfBlocks } from '../../src/documents/pdf-layout';
import { markdownBlocks, plainBlocks, titleOf } from '../../src/documents/plain';
import { type Block, measureCharacters, splitBlocks } from '../../src/documents/split';

const words = (text: string): number => text.match(/\S+/g)?.length ?? 0;
const byWords = (limit: number) => ({ limit, measure: async (texts: readonly string[]) => texts.map(words) });

describe('Markdown', () => {
  const source = [
    '---\ntitle: left out\n---\n# Handbook\n\nIntro.\n\n## Returns\n\nThirty days.\n\n### Tents\n\nDry and clean.\n',
    '## Prices\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\n# no heading\n```\n\n![x](data:image/png;base64,AAAA)\n',
  ].join('\n');

  it('is split at its headings, and each passage knows those above it', async () => {
    const drafts = await splitBlocks(markdownBlocks(source), byWords(100));
    expect(drafts.map(({ path, text }) => [path.join(' > '), text.split('\n')[0]])).toEqual([
      ['Handbook', 'Intro.'],
      ['Handbook > Returns', 'Thirty days.'],
      ['Handbook > Returns > Tents', 'Dry and clean.'],
      ['Handbook > Prices', '| a | b |'],
    ]);
    expect(drafts[3]?.text).toContain('# no heading');
    expect(drafts[3]?.text).not.toContain('base64');
    expect(titleOf(markdownBlocks(source))).toBe('Handbook');
  });

  it('of headings alone is kept as text', async () => {
    const drafts = await splitBlocks(markdownBlocks('# One\n\n## Two\n'), byWords(100));
    expect(drafts.map(({ text }) => text)).toEqual(['One\n\nTwo']);
  });

  it('nested deeper than the parser can follow is still read', () => {
    expect(markdownBlocks(`${'>'.repeat(20_000)} deep`).length).toBeGreaterThan(0);
  });
});

describe('plain text', () => {
  it('has paragraphs, and headings where lines look like them', async () => {
    const text =
      'Chapter 1\n\nFirst words.\nSecond line.\n\n1.2 Prices abroad\n\nNo cheap ones.\n\n第三章 退货\n\n三十天之内。';
    const drafts = await splitBlocks(plainBlocks(text), byWords(100));
    expect(drafts.map(({ path, text: body }) => [path, body])).toEqual([
      [['Chapter 1'], 'First words.\nSecond line.'],
      [['Chapter 1', '1.2 Prices abroad'], 'No cheap ones.'],
      [['第三章 退货'], '三十天之内。'],
    ]);
  });

  it('without empty lines has a paragraph a line', () => {
    expect(plainBlocks('one\ntwo\r\nthree')).toHaveLength(3);
  });

  it.each([
    ['utf-8', new TextEncoder().encode('Größe 大小')],
    ['utf-16', new Uint8Array([0xff, 0xfe, 0x27, 0x59, 0x0f, 0x5c])],
    ['gb18030', new Uint8Array([0xb4, 0xf3, 0xd0, 0xa1])],
    ['windows-1252', new Uint8Array([...'size: Gr', '\xf6', '\xdf', 'e'].map((char) => char.charCodeAt(0)))],
  ])('is read in %s', (_, bytes) => {
    expect(decodeText(bytes)).toMatch(/大小|Größe/);
  });

  it('is not what a picture or a program is', () => {
    for (const bytes of [new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]), new Uint8Array([65, 1, 66])]) {
      expect(() => decodeText(bytes)).toThrow(expect.objectContaining({ code: 'not_text' }));
    }
  });
});

describe('sizes', () => {
  const paragraph = (count: number, from = 0): string =>
    Array.from({ length: count }, (_, index) => `Word${from + index} is here.`).join(' ');

  it('fill passages with whole paragraphs up to the limit', async () => {
    const text = [paragraph(2), paragraph(2, 10), paragraph(2, 20)].join('\n\n');
    const drafts = await splitBlocks(plainBlocks(text), byWords(12));
    expect(drafts.map(({ size }) => size)).toEqual([12, 6]);
    expect(drafts.every(({ size, text: body }) => words(body) === size)).toBe(true);
  });

  it('cut a paragraph that is too long between sentences, then between words, and lose nothing', async () => {
    const long = `${paragraph(30)} ${Array.from({ length: 50 }, (_, index) => `x${index}`).join(' ')}`;
    const drafts = await splitBlocks([{ kind: 'text', text: long, page: null }], byWords(20));
    expect(Math.max(...drafts.map(({ text }) => words(text)))).toBeLessThanOrEqual(20);
    expect(drafts[0]?.text.endsWith('here.')).toBe(true);
    expect(
      drafts
        .map(({ text }) => text)
        .join(' ')
        .match(/\S+/g),
    ).toEqual(long.match(/\S+/g));
  });

  it('cut Chinese, which has no spaces, without halving a character', async () => {
    const long = `${'这是一个没有空格的句子，'.repeat(20)}𠮷`.repeat(3);
    const drafts = await splitBlocks([{ kind: 'text', text: long, page: null }], {
      limit: 100,
      measure: measureCharacters,
    });
    const sizes = await measureCharacters(drafts.map(({ text }) => text));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(100);
    expect(drafts.map(({ text }) => text).join('')).toBe(long);
    expect(drafts.every(({ text }) => !/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/.test(text))).toBe(true);
  });

  it('keep the lines of code together while they fit', async () => {
    const code = `\`\`\`\n${Array.from({ length: 12 }, (_, index) => `let a${index} = ${index};`).join('\n')}\n\`\`\``;
    const drafts = await splitBlocks(markdownBlocks(code), byWords(20));
    expect(drafts.length).toBeGreaterThan(1);
    for (const { text } of drafts) for (const line of text.split('\n')) expect(line).toMatch(/^```$|^let a\d+ = \d+;$/);
  });

  it('count a wide character as four narrow ones', async () => {
    expect(await measureCharacters(['abcd', '大', 'a大'])).toEqual([4, 4, 5]);
  });
});

describe('the same text', () => {
  it('is kept once, whatever its white space', async () => {
    const blocks: Block[] = ['Same  words.', 'Other words.', 'Same\nwords.'].flatMap((text, index): Block[] => [
      { kind: 'heading', level: 1, text: `H${index}`, page: null },
      { kind: 'text', text, page: null },
    ]);
    const { unique, numDuplicates } = await dedupe(await splitBlocks(blocks, byWords(50)));
    expect(unique.map(({ path }) => path[0])).toEqual(['H0', 'H1']);
    expect(numDuplicates).toBe(1);
    expect(await hashOf('a b')).toBe(await hashOf(' a\n b '));
    expect(await hashOf('a b')).not.toBe(await hashOf('ab'));
  });
});

describe('PDF pages', () => {
  const line = (str: string, y: number, size = 10, x = 72): PdfItem => ({
    str,
    transform: [size, 0, 0, size, x, y],
    hasEOL: true,
  });
  const page = (number: number, ...lines: PdfItem[]): PdfItem[] => [
    line('The harbour shop', 820),
    ...lines,
    line(`Page ${number}`, 20),
  ];

  it('have headings by size, paragraphs by distance, and no running heads', async () => {
    const pages = [
      page(
        1,
        line('Returns', 700, 18),
        line('Goods can be re-', 670),
        line('turned soon.', 657),
        line('A new one.', 620),
      ),
      page(2, line('Tents', 700, 14), line('在三十', 670), line('天之内。', 657)),
      page(3, line('Last', 700, 14), line('End.', 670)),
    ];
    expect(pdfBlocks(pages)).toEqual([
      { kind: 'heading', level: 1, text: 'Returns', page: 1 },
      { kind: 'text', text: 'Goods can be returned soon.', page: 1 },
      { kind: 'text', text: 'A new one.', page: 1 },
      { kind: 'heading', level: 2, text: 'Tents', page: 2 },
      { kind: 'text', text: '在三十天之内。', page: 2 },
      { kind: 'heading', level: 2, text: 'Last', page: 3 },
      { kind: 'text', text: 'End.', page: 3 },
    ]);
    const drafts = await splitBlocks(pdfBlocks(pages), byWords(100));
    expect(drafts.map(({ page: at, path }) => [at, path.join(' > ')])).toEqual([
      [1, 'Returns'],
      [2, 'Returns > Tents'],
      [3, 'Returns > Last'],
    ]);
  });

  it('without letters have no blocks', () => {
    expect(pdfBlocks([[], [line('  ', 700)]])).toEqual([]);
  });
});
