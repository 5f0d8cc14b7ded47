import { describe, expect, it, vi } from 'vitest';
import { renderBlocks } from '../src/chat/markdown';

const html = (markdown: string): string =>
  renderBlocks(markdown)
    .map((block) => block.html)
    .join('');

describe('renderBlocks', () => {
  it('renders what chat models write', () => {
    expect(html('**a** `b`')).toBe('<p><strong>a</strong> <code>b</code></p>\n');
    expect(html('1. a\n2. b')).toContain('<li>a</li>');
    expect(html('- [x] done')).toContain('☑ done');
    expect(html('|a|b|\n|-|-:|\n|1|2|')).toContain('<td class="end">2</td>');
  });

  it('keeps the first two heading levels for the page', () => {
    expect(html('# a')).toContain('<h3>a</h3>');
    expect(html('###### a')).toContain('<h6>a</h6>');
  });

  it('shows raw HTML as text', () => {
    const dom = document.createElement('div');
    dom.innerHTML = html(
      'a <img src=x onerror=alert(1)> <script>alert(1)</script>\n\n<iframe src="https://x"></iframe>',
    );
    expect(dom.querySelectorAll('img, script, iframe')).toHaveLength(0);
    expect(dom.textContent).toContain('<script>alert(1)</script>');
  });

  it.each([
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a](data:text/html,x)',
    '[a](vbscript:x)',
    '[a](/here)',
    '<javascript:alert(1)>',
  ])('makes no link of %s', (markdown) => {
    expect(html(markdown)).not.toContain('href');
  });

  it('opens links elsewhere and tells that place nothing', () => {
    expect(html('[a](https://example.com/?q="x")')).toContain('target="_blank" rel="noopener noreferrer nofollow"');
  });

  it('loads no image: it becomes a link', () => {
    expect(html('![cat](https://example.com/c.png)')).toContain('href="https://example.com/c.png"');
    expect(html('![cat](https://example.com/c.png)')).not.toContain('<img');
  });

  it('writes no inline style, which the policy would refuse', () => {
    expect(html('|a|\n|:-:|\n|1|')).not.toContain('style=');
  });

  it('gives code blocks a copy button and escapes their text', () => {
    const code = html('```html\n<b>&amp;</b>\n```');
    expect(code).toContain('data-copy');
    expect(code).toContain('&lt;b&gt;&amp;amp;&lt;/b&gt;');
  });

  it('keeps finished blocks identical while text grows', () => {
    const before = renderBlocks('first\n\nsecond');
    const after = renderBlocks('first\n\nsecond grows', before);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it('renders every prefix of an answer without throwing', () => {
    const text = 'a **b** `c`\n\n```js\nx < 1\n```\n\n| a | b |\n|---|---|\n| 1 | [l](https://x.y) |\n\n> q\n\n- [ ] t';
    for (let end = 0; end <= text.length; end += 1) expect(() => renderBlocks(text.slice(0, end))).not.toThrow();
  });

  it('nesting deeper than the stack is shown as it was written', () => {
    const text = '>'.repeat(20_000);
    const blocks = renderBlocks(text);
    expect(blocks).toEqual([{ source: text, html: `<p>${'&gt;'.repeat(20_000)}</p>`, text, lang: 'en' }]);
    expect(html(`${'1. '.repeat(8000)}<img src=x onerror=alert(1)>`)).not.toContain('<img');
  });

  it('what the parser would take minutes for is shown as it was written', () => {
    for (const text of ['**a*'.repeat(200_000), `${'a'.repeat(90_000)}@`, `see ${'a.b+'.repeat(20_000)}@ x`]) {
      expect(renderBlocks(text)).toEqual([{ source: text, html: `<p>${text}</p>`, text, lang: 'en' }]);
    }
    expect(html(`**b** me@example.org ${'a'.repeat(3000)}`)).toContain('<strong>b</strong>');
  });

  it('gives the words alone for announcements', () => {
    expect(renderBlocks('**a** [b](https://x.y) `c`')[0]?.text).toBe('a b c');
    expect(renderBlocks('- one\n- two')[0]?.text).toBe('one two');
    expect(renderBlocks('```\nx\n```')[0]?.text).toBe('Code block.');
  });
});

describe('before the renderer is there', () => {
  it('an answer is its own text, and rendered once the renderer came', async () => {
    vi.resetModules();
    const { blocksOf, loadMarkdown } = await import('../src/chat/blocks');
    const text = '**Two** <b>\n';
    expect(blocksOf('')).toEqual([]);
    expect(blocksOf(text)).toMatchObject([{ source: text, text: '**Two** <b>' }]);
    expect(blocksOf(text)[0]?.html).toBe('<p class="as-written">**Two** &lt;b&gt;\n</p>');
    await loadMarkdown();
    expect(blocksOf(text)[0]?.html).toBe('<p><strong>Two</strong> &lt;b&gt;</p>\n');
  });
});
