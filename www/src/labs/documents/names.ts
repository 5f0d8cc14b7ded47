/** What the lab calls its experiments and orders, in the visitor's language. */
import { t } from '../../documents/text';
import type { ExperimentId, Order } from './order';

/** An experiment's name and what to expect of it, in words. */
export function describe(id: ExperimentId): { name: string; before: string; after: string } {
  return id === 'questions'
    ? { name: t('questionsName'), before: t('questionsBefore'), after: t('questionsAfter') }
    : { name: t('turnsName'), before: t('turnsBefore'), after: t('turnsAfter') };
}

export function orderName(order: Order): string {
  switch (order) {
    case 'first':
      return t('orderFirst');
    case 'after':
      return t('orderAfter');
    case 'moved':
      return t('orderMoved');
    case 'kept':
      return t('orderKept');
  }
}
