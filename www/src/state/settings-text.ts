/** The `t` of settings, the choice of a model and its loading. */
import { translator } from '../i18n';
import { settings as en } from '../i18n/en/settings';
import { settings as zh } from '../i18n/zh/settings';

export const t = translator(en, zh);
