/** The `t` of what the chat shows of documents, and where a passage stands in words. */
import { translator } from '../i18n';
import { sources as en } from '../i18n/en/sources';
import { sources as zh } from '../i18n/zh/sources';
import type { SourceRecord } from './source';

export const t = translator(en, zh);

/** File, page and headings: `handbook.pdf, page 3, Returns › Abroad`. */
export function placeText({ file, path, page }: Pick<SourceRecord, 'file' | 'path' | 'page'>): string {
  const parts = [file];
  if (page !== null) parts.push(t('page', { page }));
  if (path.length > 0) parts.push(path.join(' › '));
  return parts.join(', ');
}

/** A source in one sentence. */
export function sourceLabel(source: SourceRecord): string {
  const { number, title } = source;
  return t('sourceOf', { number: String(number), title, place: placeText(source) });
}
