/** The `t` of the cache lab. */
import { translator } from '../../i18n';
import { cache as en } from '../../i18n/en/cache';
import { cache as zh } from '../../i18n/zh/cache';

export const t = translator(en, zh);
