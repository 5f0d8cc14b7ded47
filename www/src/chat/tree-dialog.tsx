/** All branches of a conversation, each message a line. */
import type { JSX } from 'preact';
import { Dialog } from '../ui/kit';
import { useChat } from './context';
import { t } from './text';
import type { Message } from './thread';
import { treeRows } from './tree';

export default function TreeDialog(): JSX.Element {
  const chat = useChat();
  const thread = chat.thread.value;
  const shown = new Set(thread.path.value.map(({ id }) => id));
  const close = (): void => {
    chat.dialog.value = null;
  };
  return (
    <Dialog title={t('branches')} shape="sheet" onClose={close}>
      <p class="help">{t('branchesHelp')}</p>
      <ul class="tree">
        {treeRows(thread.nodes.value).map(({ node, depth, isFork }) => (
          <li key={node.id} class={isFork ? 'fork' : ''} style={{ '--depth': String(Math.min(depth, 12)) }}>
            <button
              type="button"
              class={node.role}
              aria-current={shown.has(node.id) ? 'true' : undefined}
              title={t('goToBranch')}
              disabled={chat.busy.value}
              onClick={() => {
                chat.select(node.id);
                close();
              }}
            >
              <span class="visually-hidden">{node.role === 'user' ? t('you') : t('answer')}</span>
              <span class="tree-text">{snippet(node)}</span>
              {shown.has(node.id) && <span class="visually-hidden">{t('current')}</span>}
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

const SNIPPET_LENGTH = 90;

function snippet(message: Message): string {
  const { text } = message.state.value;
  // Without what only Markdown's renderer is for.
  const words = text.replace(/[*_`#>|]+/g, '');
  const line = (words || message.attachments.map(({ name }) => name).join(', ')).replace(/\s+/g, ' ').trim();
  return line.length > SNIPPET_LENGTH ? `${line.slice(0, SNIPPET_LENGTH)}…` : line || '…';
}
