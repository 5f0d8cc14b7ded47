/** The `t` of the chat. */
import { translator } from '../i18n';
import { chat as en } from '../i18n/en/chat';
import { chat as zh } from '../i18n/zh/chat';

export const t = translator(en, zh);
