/** Numbers in brackets: which are citations, and what becomes of them on the page. */
import { describe, expect, it, vi } from 'vitest';
import { renderBlocks } from '../../src/chat/markdown';
import { citedNumbers, decorateCitations, splitCitations } from '../../src/documents/citations';

const known = (number: number): boolean => [1, 2, 12].includes(number);

describe('citations', () => {
  it('are numbers of sources in brackets, one or several', () => {
    expect(splitCitations('So [1], or [2, 12]. See [1][2].', known)).toEqual([
      'So ',
      [1],
      ', or ',
      [2, 12],
      '. See ',
      [1],
      [2],
      '.',
    ]);
    expect(splitCitations('可以【1】，也可以【2，12】。', known)).toEqual(['可以', [1], '，也可以', [2, 12], '。']);
  });

  it('are not numbers that nobody gave out', () => {
    for (const text of ['a[3]', '[0] and [99]', '[1, 3]', '[one]', '[12345]', '1]', '[-1]']) {
      expect(splitCitations(text, known)).toEqual([text]);
    }
  });

  it('are listed once, in the order of the answer', () => {
    expect(citedNumbers('[12] [1] [12] [7]', known)).toEqual([12, 1]);
  });
});

describe('an answer', () => {
  const show = (markdown: string): HTMLElement => {
    const element = document.createElement('div');
    element.innerHTML = renderBlocks(markdown)
      .map(({ html }) => html)
      .join('');
    return element;
  };

  it('has a button for each citation, outside of code and links', () => {
    const element = show(
      'Two **years [1]**, says [2, 12].\n\n`a[1]` and [x [1]](https://example.com/)\n\n```\nb[2]\n```',
    );
    const onOpen = vi.fn();
    const options = { isKnown: known, labelOf: (number: number) => `Source ${number}`, onOpen };
    decorateCitations(element, options);
    // A second time changes nothing but names.
    decorateCitations(element, { ...options, labelOf: (number) => `来源 ${number}` });
    const buttons = [...element.querySelectorAll<HTMLButtonElement>('button.cite')];
    expect(buttons.map((button) => button.textContent)).toEqual(['1', '2', '12']);
    expect(buttons[0]?.getAttribute('aria-label')).toBe('来源 1');
    expect(buttons[0]?.parentElement?.tagName).toBe('STRONG');
    buttons[2]?.click();
    expect(onOpen.mock.calls).toEqual([[12]]);
    expect(element.textContent).toContain('a[1]');
    expect(element.textContent).toContain('b[2]');
  });

  it('keeps unknown numbers as its text', () => {
    const element = show('See [1] and [42].');
    decorateCitations(element, { isKnown: known, labelOf: String, onOpen: () => undefined });
    expect(element.textContent?.trim()).toBe('See 1 and [42].');
    expect(element.querySelectorAll('button.cite')).toHaveLength(1);
  });
});
