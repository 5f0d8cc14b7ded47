/** What the lab calls things, in the visitor's language. */
import type { CacheMiss } from 'pagewise';
import type { ExperimentId } from './experiments';
import { t } from './text';

/** Requests are called A, B, C… */
export function letter(index: number): string {
  return String.fromCharCode(65 + index);
}

/** An experiment's name and what to expect of it, in words. */
export function describe(id: ExperimentId): { name: string; before: string } {
  switch (id) {
    case 'same':
      return { name: t('same'), before: t('sameBefore') };
    case 'time_first':
      return { name: t('timeFirst'), before: t('timeFirstBefore') };
    case 'time_last':
      return { name: t('timeLast'), before: t('timeLastBefore') };
    case 'reordered':
      return { name: t('reordered'), before: t('reorderedBefore') };
    case 'changed_word':
      return { name: t('changedWord'), before: t('changedWordBefore') };
    case 'edited_turn':
      return { name: t('editedTurn'), before: t('editedTurnBefore') };
    case 'branches':
      return { name: t('branches'), before: t('branchesBefore') };
    case 'service':
      return { name: t('service'), before: t('serviceBefore') };
    case 'crowded':
      return { name: t('crowded'), before: t('crowdedBefore') };
  }
}

/** Why no more was reused. */
export function missName(reason: CacheMiss['reason']): string {
  switch (reason) {
    case 'cold':
      return t('missCold');
    case 'evicted':
      return t('missEvicted');
    case 'expired':
      return t('missExpired');
    case 'differs':
      return t('missDiffers');
    case 'template_changed':
      return t('missTemplate');
    case 'salted':
      return t('missSalted');
    case 'disabled':
      return t('missDisabled');
  }
}
