/** Why a file was not taken, and what can be done, in words. */
import { formatBytes } from '../i18n/format';
import { maxBytes } from './read';
import type { DocumentProblemCode } from './records';
import { t } from './text';

export function problemText(code: DocumentProblemCode, name: string): string {
  switch (code) {
    case 'empty':
      return t('problemEmpty', { name });
    case 'not_text':
      return t('problemNotText', { name });
    case 'too_large':
      return t('problemTooLarge', { name, limit: formatBytes(maxBytes(name)) });
    case 'encrypted':
      return t('problemEncrypted', { name });
    case 'scanned':
      return t('problemScanned', { name });
    case 'broken':
      return t('problemBroken', { name });
    case 'stuck':
      return t('problemStuck', { name });
    case 'unreadable':
      return t('problemUnreadable', { name });
    case 'known':
      return t('problemKnown', { name });
    case 'too_many':
      return t('problemTooMany', { name });
    case 'storage_full':
      return t('problemStorageFull', { name });
    case 'not_stored':
      return t('problemNotStored', { name });
  }
}
