/** The documents of the chat: whether this conversation uses them, how many passages go with a question, and the library. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useChat } from '../chat/context';
import { hrefTo } from '../shell/router';
import { Dialog, Slider, Switch } from '../ui/kit';
import { addDocuments } from './chat';
import { DocumentList } from './document-list';
import { DEFAULT_DOCUMENTS, MAX_PASSAGES, MIN_PASSAGES, type SourceRecord } from './source';
import { SourceView } from './source-dialog';
import { t } from './text';

export default function DocumentsDialog(): JSX.Element {
  const chat = useChat();
  const [opened, setOpened] = useState<SourceRecord | null>(null);
  const documents = chat.thread.value.record.value.documents ?? DEFAULT_DOCUMENTS;
  const close = (): void => {
    chat.dialog.value = null;
  };

  // While it is open, what is dropped is a document and no attachment.
  useEffect(() => {
    const { takeFiles } = chat.session;
    const before = takeFiles.peek();
    takeFiles.value = (files) => void addDocuments(chat, files);
    return () => {
      takeFiles.value = before;
    };
  }, [chat]);

  return (
    <Dialog title={t('library')} shape="sheet" onClose={close}>
      <section class="group">
        <Switch
          label={t('use')}
          help={t('useHelp')}
          checked={documents.isOn}
          onChange={(isOn) => chat.setDocuments({ ...documents, isOn })}
        />
        <Slider
          label={t('passagesPerQuestion')}
          min={MIN_PASSAGES}
          max={MAX_PASSAGES}
          value={documents.numPassages}
          shown={t('passages', { count: documents.numPassages })}
          help={t('passagesHelp')}
          onChange={(numPassages) => chat.setDocuments({ ...documents, numPassages })}
        />
      </section>
      <section class="group">
        <h3>{t('yourDocuments')}</h3>
        <DocumentList onOpen={setOpened} onAdd={(files) => void addDocuments(chat, files)} />
      </section>
      <p class="help">
        <a href={hrefTo('labs/documents')} onClick={close}>
          {t('seeLab')}
        </a>
      </p>
      {opened && <SourceView source={opened} onClose={() => setOpened(null)} />}
    </Dialog>
  );
}
