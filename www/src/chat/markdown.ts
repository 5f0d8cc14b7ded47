/**
 * Markdown of an answer to safe HTML, block by block.
 *
 * A model's output is untrusted text: raw HTML in it is shown as text, images become links (loading one would tell its
 * host about the chat), and DOMPurify checks the result whatever the parser did. Blocks are separate so that while an
 * answer streams only the last one is rendered again.
 */
import DOMPurify from 'dompurify';
import { Marked, type Token, type TokensList } from 'marked';
import { lang } from '../i18n';
import { t as core } from '../i18n/core';
import { escapeHtml } from './escape-html';
import { t } from './text';

/** One top-level piece of an answer: a paragraph, list, code block, table... */
export interface Block {
  /** The source text; two blocks with the same source render the same. */
  readonly source: string;
  /** Sanitised HTML. */
  readonly html: string;
  /** The words alone, for a screen reader's announcement. */
  readonly text: string;
  /** Its few words of ours are in this language. */
  readonly lang: string;
}

/** Only addresses that can be opened on purpose: no `javascript:`, no `data:`, nothing relative to this page. */
function isOpenable(href: string): boolean {
  return /^(https?:|mailto:)/i.test(href);
}

function link(href: string, html: string): string {
  if (!isOpenable(href)) return html;
  return `<a href="${escapeHtml(href)}" target="_blank" rel="noopener noreferrer nofollow">${html}</a>`;
}

/** A class, because the page's policy forbids inline styles. */
function alignment(align: string | null): string {
  if (align === 'right') return ' class="end"';
  return align === 'center' ? ' class="middle"' : '';
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    link({ href, tokens }) {
      return link(href, this.parser.parseInline(tokens));
    },
    // The page's own headings are the first two levels.
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    image: ({ href, text }) => link(href, escapeHtml(text || href)),
    code({ text, lang }) {
      const language = (lang ?? '').split(/\s/, 1)[0] ?? '';
      const label = language === '' ? t('code') : language;
      const hint = language === '' ? '' : ` class="language-${escapeHtml(language)}"`;
      return (
        `<div class="code"><div class="code-head"><span>${escapeHtml(label)}</span>` +
        `<button type="button" class="copy" data-copy="">${escapeHtml(core('copy'))}</button></div>` +
        `<pre tabindex="0"><code${hint}>${escapeHtml(text)}</code></pre></div>`
      );
    },
    table(token) {
      const row = (cells: typeof token.header, tag: 'th' | 'td'): string =>
        `<tr>${cells.map((cell) => `<${tag}${alignment(cell.align)}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
      return (
        `<div class="table" tabindex="0"><table><thead>${row(token.header, 'th')}</thead>` +
        `<tbody>${token.rows.map((cells) => row(cells, 'td')).join('')}</tbody></table></div>`
      );
    },
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

const PURIFY = {
  ALLOWED_TAGS: [
    'a',
    'blockquote',
    'br',
    'button',
    'code',
    'del',
    'div',
    'em',
    'h3',
    'h4',
    'h5',
    'h6',
    'hr',
    'li',
    'ol',
    'p',
    'pre',
    'span',
    'strong',
    'table',
    'tbody',
    'td',
    'th',
    'thead',
    'tr',
    'ul',
  ],
  ALLOWED_ATTR: ['class', 'data-copy', 'href', 'rel', 'start', 'tabindex', 'target', 'type'],
};

/** The words of a token and of everything in it. */
function plainText(token: Token): string {
  if (token.type === 'code') return t('codeBlock');
  const children: Token[] = 'tokens' in token && token.tokens ? token.tokens : [];
  if (token.type === 'list') return (token.items as Token[]).map(plainText).join(' ');
  if (children.length > 0) return children.map(plainText).join('');
  if (token.type === 'space') return ' ';
  return 'text' in token ? String(token.text) : '';
}

/** Longest text that is taken apart, in characters; a context of 4,096 tokens is about 20,000. */
const MAX_MARKDOWN = 100_000;
/** Longest word of one that may have addresses in it. */
const MAX_WORD = 4000;

/** Splits `markdown` into rendered blocks, taking those that did not change from `previous`. */
export function renderBlocks(markdown: string, previous: readonly Block[] = []): Block[] {
  try {
    if (!takesTooLong(markdown)) return parseBlocks(markdown, previous);
  } catch {
    // Nested deeper than the parser's stack, as when a model repeats `>` without end: shown as it was written.
  }
  return [{ source: markdown, html: `<p>${escapeHtml(markdown)}</p>`, text: markdown.trim(), lang: lang.value }];
}

/** Whether the parser, which looks at some texts again for every character, would hold up the page. No answer is like that. */
function takesTooLong(markdown: string): boolean {
  if (markdown.length > MAX_MARKDOWN) return true;
  // What could be an address of mail is looked for from each letter on.
  return markdown.includes('@') && markdown.split(/\s/).some((word) => word.length > MAX_WORD);
}

function parseBlocks(markdown: string, previous: readonly Block[]): Block[] {
  const tokens = marked.lexer(markdown);
  const blocks: Block[] = [];
  for (const token of tokens) {
    if (token.type === 'space') continue;
    const known = previous[blocks.length];
    blocks.push(known?.source === token.raw && known.lang === lang.value ? known : renderToken(token, tokens));
  }
  return blocks;
}

function renderToken(token: Token, all: TokensList): Block {
  const one: TokensList = Object.assign([token], { links: all.links });
  const html = DOMPurify.sanitize(marked.parser(one), PURIFY);
  return { source: token.raw, html, text: plainText(token).trim(), lang: lang.value };
}
