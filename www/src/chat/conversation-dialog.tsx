/** What can be done with one conversation of the list. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Button, Dialog } from '../ui/kit';
import { useChat } from './context';
import { exportConversation } from './files';
import type { ConversationRecord } from './records';
import { t } from './text';

export function ConversationDialog({
  record,
  onClose,
}: {
  record: ConversationRecord;
  onClose: () => void;
}): JSX.Element {
  const chat = useChat();
  const [title, setTitle] = useState(record.title);
  const rename = (event: Event): void => {
    event.preventDefault();
    void chat.rename(record.id, title);
    onClose();
  };
  return (
    <Dialog title={record.title || t('untitled')} shape="box" onClose={onClose}>
      <form onSubmit={rename}>
        <label class="field" for="conversation-title">
          <span class="field-head">{t('title')}</span>
        </label>
        <div class="row">
          <input
            id="conversation-title"
            class="input"
            type="text"
            autocomplete="off"
            value={title}
            onInput={(event) => setTitle(event.currentTarget.value)}
          />
          <Button type="submit" disabled={title.trim() === '' || title === record.title}>
            {t('rename')}
          </Button>
        </div>
      </form>
      <div class="actions stacked">
        <Button icon="download" onClick={() => void exportConversation(chat, record.id, 'markdown')}>
          {t('exportMarkdown')}
        </Button>
        <Button icon="download" onClick={() => void exportConversation(chat, record.id, 'json')}>
          {t('exportJson')}
        </Button>
        <Button
          kind="danger"
          icon="trash"
          onClick={() => {
            onClose();
            void chat.delete(record.id);
          }}
        >
          {t('deleteConversation')}
        </Button>
      </div>
    </Dialog>
  );
}
