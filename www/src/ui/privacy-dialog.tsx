/** What is stored where, and a way to erase it. */
import type { JSX } from 'preact';
import { t as core } from '../i18n/core';
import { useSession } from './context';
import { Dialog } from './kit';

export default function PrivacyDialog(): JSX.Element {
  const session = useSession();
  return (
    <Dialog title={core('privacy')} shape="box" onClose={() => session.closeDialog()}>
      {null}
    </Dialog>
  );
}
