/** The facts of a known model in one line. */
import type { JSX } from 'preact';
import { formatBytes } from '../i18n/format';
import type { KnownModel } from '../state/models';

export function ModelFacts({ model }: { model: KnownModel }): JSX.Element {
  const facts = [model.bytes === null ? '' : formatBytes(model.bytes), model.quantisation, model.licence];
  return <span class="facts">{facts.filter((fact) => fact !== '').join(' · ')}</span>;
}
