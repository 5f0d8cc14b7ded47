/** The `t` of the batching lab. */
import { translator } from '../../i18n';
import { batching as en } from '../../i18n/en/batching';
import { batching as zh } from '../../i18n/zh/batching';

export const t = translator(en, zh);
