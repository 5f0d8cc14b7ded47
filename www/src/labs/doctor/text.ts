/** The `t` of the prompt doctor. */
import { translator } from '../../i18n';
import { doctor as en } from '../../i18n/en/doctor';
import { doctor as zh } from '../../i18n/zh/doctor';

export const t = translator(en, zh);
