/** Opens the documents, beside the attachments; says whether the conversation uses them. */
import type { JSX } from 'preact';
import { useChat } from '../chat/context';
import { IconButton } from '../ui/kit';
import { t } from './source-text';

export function DocumentsButton({ disabled }: { disabled: boolean }): JSX.Element {
  const chat = useChat();
  const isOn = chat.thread.value.record.value.documents?.isOn === true;
  return (
    <IconButton
      icon="documents"
      label={isOn ? t('documentsOn') : t('documents')}
      class={isOn ? 'documents-button is-on' : 'documents-button'}
      opens="dialog"
      disabled={disabled}
      onClick={() => {
        chat.dialog.value = 'documents';
      }}
    />
  );
}
