/** What each cause is called, and what to do about it, in the visitor's language. */
import type { MissCause } from 'pagewise';
import { t } from './text';

/** A cause in words; `advice` is empty where there is nothing to do. */
export interface CauseText {
  readonly name: string;
  readonly advice: string;
}

export function causeText(cause: MissCause): CauseText {
  switch (cause) {
    case 'identical':
      return { name: t('identical'), advice: '' };
    case 'appended':
      return { name: t('appended'), advice: '' };
    case 'shortened':
      return { name: t('shortened'), advice: '' };
    case 'new_conversation':
      return { name: t('newConversation'), advice: '' };
    case 'timestamp':
      return { name: t('timestamp'), advice: t('moveLast') };
    case 'uuid':
      return { name: t('uuid'), advice: t('moveLast') };
    case 'identifier':
      return { name: t('identifier'), advice: t('moveLast') };
    case 'counter':
      return { name: t('counter'), advice: t('moveLast') };
    case 'whitespace':
      return { name: t('whitespace'), advice: t('whitespaceAdvice') };
    case 'order':
      return { name: t('order'), advice: t('orderAdvice') };
    case 'model_changed':
      return { name: t('modelChanged'), advice: t('modelAdvice') };
    case 'template_changed':
      return { name: t('templateChanged'), advice: t('templateAdvice') };
    case 'tools_changed':
      return { name: t('toolsChanged'), advice: t('toolsAdvice') };
    case 'thinking_stripped':
      return { name: t('thinkingStripped'), advice: t('thinkingAdvice') };
    case 'user_text':
      return { name: t('userText'), advice: t('userTextAdvice') };
    case 'edited':
      return { name: t('edited'), advice: t('editedAdvice') };
    case 'deleted':
      return { name: t('deleted'), advice: t('historyAdvice') };
    case 'inserted':
      return { name: t('inserted'), advice: t('insertedAdvice') };
    case 'reordered':
      return { name: t('reordered'), advice: t('orderAdvice') };
    case 'history_rewritten':
      return { name: t('historyRewritten'), advice: t('historyAdvice') };
  }
}
