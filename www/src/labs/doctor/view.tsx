/** The doctor lab. */
import type { JSX } from 'preact';
import { t } from '../../i18n/core';
import { LabView } from '../../shell/lab-view';

export default function DoctorLab(): JSX.Element {
  return <LabView lead={t('labComing')}>{null}</LabView>;
}
