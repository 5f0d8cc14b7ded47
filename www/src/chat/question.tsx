/** One question: its words, its files, and what can be done with it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { formatBytes } from '../i18n/format';
import { Icon, IconButton } from '../ui/kit';
import { Branches } from './branches';
import { useChat } from './context';
import { CopyButton } from './copy-button';
import { EditBox } from './edit-box';
import { t } from './text';
import type { Message } from './thread';

export function QuestionView({ message }: { message: Message }): JSX.Element {
  const chat = useChat();
  const [isEditing, setEditing] = useState(false);
  const { text } = message.state.value;
  if (isEditing) {
    return (
      <EditBox
        label={t('editMessage')}
        text={text}
        action={t('sendEdited')}
        onSave={(changed) => chat.edit(message, changed)}
        onClose={() => setEditing(false)}
      />
    );
  }
  return (
    <div class="asked">
      <h2 class="visually-hidden">{t('you')}</h2>
      {message.attachments.length > 0 && (
        <ul class="chips" aria-label={t('attached')}>
          {message.attachments.map(({ name, bytes }) => (
            <li key={name} class="chip">
              <Icon name="file" />
              <span class="chip-name">{name}</span>
              <span class="chip-size">{formatBytes(bytes)}</span>
            </li>
          ))}
        </ul>
      )}
      {text !== '' && <div class="question">{text}</div>}
      <div class="question-foot">
        <Branches message={message} />
        <CopyButton text={text} label={t('copyMessage')} />
        <IconButton icon="edit" label={t('editMessage')} disabled={chat.busy.value} onClick={() => setEditing(true)} />
      </div>
    </div>
  );
}
