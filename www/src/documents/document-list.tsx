/** The library: files that are read, files that were not taken and why, and the documents with their passages. */
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { formatBytes } from '../i18n/format';
import { useSession } from '../ui/context';
import { Button, Icon, IconButton } from '../ui/kit';
import { documentsOf, sizingOf } from './context';
import type { DocumentLibrary } from './library';
import { problemText } from './problem-text';
import type { DocumentRecord, PassageRecord } from './records';
import { type SourceRecord, toSource } from './source';
import { placeText } from './source-text';
import { sizeText, t } from './text';
import './documents.css';

/** How long a removed document can be brought back. */
const UNDO_MS = 10_000;
/** Passages of a document that are listed. */
const NUM_SHOWN = 100;

export interface DocumentListProps {
  readonly onOpen: (source: SourceRecord) => void;
  /** Takes files in place of the library itself. */
  readonly onAdd?: (files: readonly File[]) => void;
}

export function DocumentList({ onOpen, onAdd }: DocumentListProps): JSX.Element {
  const session = useSession();
  const library = documentsOf(session);
  const documents = library.list.value;
  const add = onAdd ?? ((files: readonly File[]) => void library.add(files, () => sizingOf(session)));

  const remove = async (document: DocumentRecord): Promise<void> => {
    const undo = await library.delete(document.id);
    if (!undo) return;
    const text = (): string => t('removed', { title: document.title });
    const action = { label: () => t('undo'), run: () => void undo() };
    session.notices.show({ id: `removed ${document.id}`, text, action }, UNDO_MS);
  };

  return (
    <div class="documents">
      <AddButton onAdd={add} />
      <Readings library={library} />
      <Problems library={library} />
      {library.failure.value && (
        <p class="warning">{library.failure.value === 'forbidden' ? t('forbidden') : t('erased')}</p>
      )}
      {documents?.length === 0 && !library.failure.value && <p class="help">{t('noneYet')}</p>}
      {documents !== null && documents.length > 0 && (
        <ul class="document-list" aria-label={t('yourDocuments')}>
          {documents.map((document) => (
            <li key={document.id} data-document={document.id}>
              <DocumentRow
                document={document}
                library={library}
                onOpen={onOpen}
                onRemove={() => void remove(document)}
              />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function AddButton({ onAdd }: { onAdd: (files: readonly File[]) => void }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="add-documents">
      <Button icon="plus" onClick={() => input.current?.click()}>
        {t('add')}
      </Button>
      <span class="help">{t('addHelp')}</span>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept=".txt,.text,.md,.markdown,.pdf,text/*,application/pdf"
        aria-label={t('add')}
        onChange={(event) => {
          onAdd([...(event.currentTarget.files ?? [])]);
          // The same file may be chosen again.
          event.currentTarget.value = '';
        }}
      />
    </div>
  );
}

function Readings({ library }: { library: DocumentLibrary }): JSX.Element {
  return (
    <ul class="readings" aria-label={t('readings')} hidden={library.readings.value.length === 0}>
      {library.readings.value.map(({ id, name, pages }) => (
        <li key={id} role="status">
          <span class="reading-name">{pages ? t('readingPages', { name, ...pages }) : t('reading', { name })}</span>
          <progress {...(pages ? { value: pages.done, max: pages.total } : {})} aria-label={t('reading', { name })} />
          <IconButton icon="close" label={t('cancelReading', { name })} onClick={() => library.cancel(id)} />
        </li>
      ))}
    </ul>
  );
}

function Problems({ library }: { library: DocumentLibrary }): JSX.Element {
  return (
    <div role="alert" class="document-problems">
      {library.problems.value.map(({ id, name, code }) => (
        <div key={id} class="document-problem" data-code={code}>
          <p>{problemText(code, name)}</p>
          <IconButton icon="close" label={t('dismiss', { name })} onClick={() => library.dismiss(id)} />
        </div>
      ))}
    </div>
  );
}

interface DocumentRowProps {
  readonly document: DocumentRecord;
  readonly library: DocumentLibrary;
  readonly onOpen: (source: SourceRecord) => void;
  readonly onRemove: () => void;
}

function DocumentRow({ document, library, onOpen, onRemove }: DocumentRowProps): JSX.Element {
  const [passages, setPassages] = useState<readonly PassageRecord[]>([]);
  const { title, name, bytes, numPages, numPassages, numDuplicates, unit } = document;
  const facts = [
    ...(title === name ? [] : [name]),
    formatBytes(bytes),
    ...(numPages === null ? [] : [t('pages', { count: numPages })]),
    t('passages', { count: numPassages }),
    ...(numDuplicates > 0 ? [t('duplicates', { count: numDuplicates })] : []),
  ];
  return (
    <>
      <details
        onToggle={(event) => {
          if (event.currentTarget.open) void library.passagesOf(document.id).then(setPassages);
        }}
      >
        <summary>
          <Icon name="file" />
          <span class="document-title">{title}</span>
          <span class="document-facts">{facts.join(' · ')}</span>
        </summary>
        <ol class="passages">
          {passages.slice(0, NUM_SHOWN).map((passage) => (
            <li key={passage.id}>
              <button type="button" aria-haspopup="dialog" onClick={() => onOpen(toSource(passage, passage.index))}>
                <span>{passage.title}</span>
                <span class="passage-facts">
                  {placeText(passage)} · {sizeText(passage.size, unit)}
                </span>
              </button>
            </li>
          ))}
        </ol>
        {passages.length > NUM_SHOWN && <p class="help">{t('morePassages', { count: passages.length - NUM_SHOWN })}</p>}
      </details>
      <IconButton icon="trash" label={t('remove', { title })} onClick={onRemove} />
    </>
  );
}
