/** The list of conversations, with search, and what can be done with all of them. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatDateTime, formatWhen, isoTime } from '../i18n/format';
import { hrefTo } from '../shell/router';
import { Button, Icon, IconButton } from '../ui/kit';
import { useChat } from './context';
import { ConversationDialog } from './conversation-dialog';
import { exportAll, importFiles } from './files';
import type { ConversationRecord } from './records';
import type { Hit } from './store';
import { t } from './text';

const SEARCH_AFTER_MS = 150;

export function ConversationList({ onChoose }: { onChoose?: () => void }): JSX.Element {
  const chat = useChat();
  const { list, hits, failure } = chat.library;
  const [opened, setOpened] = useState<string | null>(null);
  const all = list.value ?? [];
  const found = hits.value;
  const shown = found ? all.filter(({ id }) => found.has(id)) : all;
  const about = all.find(({ id }) => id === opened);
  return (
    <div class="list">
      <Button
        icon="plus"
        class="new-chat"
        onClick={() => {
          onChoose?.();
          chat.newChat();
        }}
      >
        {t('newChat')}
      </Button>
      <Search />
      {failure.value && <p class="help list-note">{failure.value === 'erased' ? t('erased') : t('forbidden')}</p>}
      <nav aria-label={t('conversations')} class="list-scroll">
        <ul>
          {shown.map((record) => (
            <Item
              key={record.id}
              record={record}
              hit={found?.get(record.id)}
              onChoose={onChoose}
              onMore={() => setOpened(record.id)}
            />
          ))}
        </ul>
        {list.value && all.length === 0 && !failure.value && <p class="help list-note">{t('noneYet')}</p>}
      </nav>
      <ListFoot isEmpty={all.length === 0} />
      {about && <ConversationDialog record={about} onClose={() => setOpened(null)} />}
    </div>
  );
}

function Search(): JSX.Element {
  const { library } = useChat();
  const [text, setText] = useState(library.query.peek());
  useEffect(() => {
    const timer = setTimeout(() => void library.search(text), text === '' ? 0 : SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const found = library.hits.value;
  return (
    <div class="search">
      <Icon name="search" />
      <input
        type="search"
        class="input"
        aria-label={t('search')}
        placeholder={t('search')}
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {text !== '' && <IconButton icon="close" label={t('clearSearch')} onClick={() => setText('')} />}
      <p class={found?.size === 0 ? 'help list-note' : 'visually-hidden'} role="status">
        {found && (found.size === 0 ? t('noneFound') : t('found', { count: found.size }))}
      </p>
    </div>
  );
}

interface ItemProps {
  readonly record: ConversationRecord;
  readonly hit: Hit | undefined;
  readonly onChoose: (() => void) | undefined;
  readonly onMore: () => void;
}

function Item({ record, hit, onChoose, onMore }: ItemProps): JSX.Element {
  const chat = useChat();
  const title = record.title || t('untitled');
  const isOpen = chat.thread.value.record.value.id === record.id;
  const isAnswering = chat.answering.running.value.has(record.id);
  return (
    <li class={isOpen ? 'item is-open' : 'item'}>
      <a href={hrefTo('chat', [record.id])} aria-current={isOpen ? 'true' : undefined} onClick={onChoose}>
        <span class="item-title">
          {isAnswering && <i class="dot" aria-hidden="true" />}
          {title}
        </span>
        <time title={formatDateTime(record.updated)} dateTime={isoTime(record.updated)}>
          {formatWhen(record.updated)}
        </time>
        {hit && (
          <span class="item-hit">
            {hit.before}
            <mark>{hit.found}</mark>
            {hit.after}
          </span>
        )}
      </a>
      <IconButton icon="more" label={t('more', { title })} opens="dialog" onClick={onMore} />
    </li>
  );
}

function ListFoot({ isEmpty }: { isEmpty: boolean }): JSX.Element {
  const chat = useChat();
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="list-foot">
      <Button kind="quiet" icon="upload" onClick={() => input.current?.click()}>
        {t('import')}
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        accept=".json,.md,.markdown,application/json,text/markdown"
        aria-label={t('importFiles')}
        onChange={(event) => {
          void importFiles(chat, [...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = '';
        }}
      />
      <Button kind="quiet" icon="download" disabled={isEmpty} onClick={() => void exportAll(chat)}>
        {t('exportAll')}
      </Button>
    </div>
  );
}
