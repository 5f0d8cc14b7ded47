/** The `t` of what the labs have in common. */
import { translator } from '../../i18n';
import { labs as en } from '../../i18n/en/labs';
import { labs as zh } from '../../i18n/zh/labs';

export const t = translator(en, zh);
