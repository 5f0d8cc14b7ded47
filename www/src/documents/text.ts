/** The `t` of documents: the library, the panel in the chat, the lab. */
import { translator } from '../i18n';
import { documents as en } from '../i18n/en/documents';
import { documents as zh } from '../i18n/zh/documents';
import type { SizeUnit } from './records';

export const t = translator(en, zh);

/** A size with its unit. */
export function sizeText(size: number, unit: SizeUnit): string {
  return unit === 'tokens' ? t('tokens', { count: size }) : t('characters', { count: size });
}
