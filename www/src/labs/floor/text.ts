/** The `t` of the latency-floor lab. */
import { translator } from '../../i18n';
import { floor as en } from '../../i18n/en/floor';
import { floor as zh } from '../../i18n/zh/floor';

export const t = translator(en, zh);
