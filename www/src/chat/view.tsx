/** The chat view. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { t as core } from '../i18n/core';
import { ViewBar } from '../shell/view-bar';
import { useSession } from '../ui/context';
import { IconButton } from '../ui/kit';
import { NoticeList } from '../ui/notices';
import { Announcer } from './announcer';
import { Composer } from './composer';
import { useChat } from './context';
import { Conversation } from './conversation';
import { StatusLine } from './status-line';

export default function ChatView(): JSX.Element {
  const session = useSession();
  const chat = useChat();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      // An open dialog takes Escape for itself.
      if (event.key === 'Escape' && session.dialog.peek() === null && chat.busy.peek()) chat.stop();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [chat]);
  return (
    <>
      <ViewBar title={core('viewChat')} hideTitle>
        <IconButton
          icon="plus"
          label="New chat"
          disabled={chat.turns.value.length === 0}
          onClick={() => chat.newChat()}
        />
      </ViewBar>
      <main class="main">
        <Conversation />
      </main>
      <footer class="dock">
        <NoticeList />
        <Composer />
        <StatusLine />
      </footer>
      <Announcer />
    </>
  );
}
