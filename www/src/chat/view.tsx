/** The chat view: the list of conversations at the side, the open one beside it. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { ViewBar } from '../shell/view-bar';
import { useSession } from '../ui/context';
import { Button, IconButton } from '../ui/kit';
import { NoticeList } from '../ui/notices';
import { Announcer } from './announcer';
import { attachFiles } from './attach';
import './conversation.css';
import './message.css';
import './answer-cost.css';
import './empty.css';
import './list.css';
import './context.css';
import './dialogs.css';
import { Composer } from './composer';
import { useChat } from './context';
import { Conversation } from './conversation';
import { ChatDialogs } from './dialogs';
import { ConversationList } from './list';
import { StatusLine } from './status-line';
import { t } from './text';

export default function ChatView(): JSX.Element {
  const session = useSession();
  const chat = useChat();

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      // An open dialog takes Escape for itself.
      const isOpen = session.dialog.peek() !== null || chat.dialog.peek() !== null;
      if (event.key === 'Escape' && !isOpen && chat.busy.peek()) chat.stop();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [chat]);

  useEffect(() => {
    const take = (files: readonly File[]): void => void attachFiles(chat, files);
    session.takeFiles.value = take;
    return () => {
      session.takeFiles.value = null;
    };
  }, [chat]);

  return (
    <div class="chat-view">
      <aside class="chat-side" aria-label={t('conversations')}>
        <ConversationList />
      </aside>
      <div class="chat-main">
        <Bar />
        <main class="main">
          <Conversation />
        </main>
        <footer class="dock">
          <NoticeList />
          <Composer />
          <StatusLine />
        </footer>
      </div>
      <Announcer />
      <ChatDialogs />
    </div>
  );
}

function Bar(): JSX.Element {
  const chat = useChat();
  const thread = chat.thread.value;
  const { title, system } = thread.record.value;
  const hasForks = [...thread.nodes.value.values()].some((message) => thread.siblings(message).length > 1);
  const systemName = system.name === null ? t('systemPrompt') : `${system.name}_v${system.version}`;
  return (
    <ViewBar
      title={title || t('untitled')}
      hideTitle
      drawer={(close) => (
        <div class="drawer-list">
          <ConversationList onChoose={close} />
        </div>
      )}
    >
      {hasForks && (
        <IconButton
          icon="branch"
          label={t('branches')}
          opens="dialog"
          onClick={() => {
            chat.dialog.value = 'tree';
          }}
        />
      )}
      <Button
        kind="quiet"
        icon="book"
        class={system.text === '' ? 'prompt-button' : 'prompt-button is-set'}
        label={system.name === null ? t('systemPrompt') : t('systemPromptOf', { name: systemName })}
        opens="dialog"
        onClick={() => {
          chat.dialog.value = 'prompt';
        }}
      >
        <span class="name">{systemName}</span>
      </Button>
      <IconButton
        icon="plus"
        label={t('newChat')}
        class="only-narrow"
        disabled={thread.path.value.length === 0}
        onClick={() => chat.newChat()}
      />
    </ViewBar>
  );
}
