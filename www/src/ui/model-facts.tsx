/** The facts of a known model in one line. */
import type { JSX } from 'preact';
import { formatBytes } from '../i18n/format';
import type { KnownModel } from '../state/models';
import { t } from '../state/settings-text';
import { useSession } from './context';

export function ModelFacts({ model }: { model: KnownModel }): JSX.Element {
  const isStored = useSession().stored.value.has(model.id);
  const size = model.bytes === null ? '' : formatBytes(model.bytes);
  const facts = [isStored ? t('onDevice') : '', size, model.quantisation, model.licence];
  return <span class="facts">{facts.filter((fact) => fact !== '').join(' · ')}</span>;
}
