/** The `t` of the memory lab. */
import { translator } from '../../i18n';
import { memory as en } from '../../i18n/en/memory';
import { memory as zh } from '../../i18n/zh/memory';

export const t = translator(en, zh);
