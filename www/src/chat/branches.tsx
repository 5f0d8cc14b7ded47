/** `‹ 2/3 ›`: moves between messages that stand in the same place. */
import type { JSX } from 'preact';
import { formatCount } from '../i18n/format';
import { IconButton } from '../ui/kit';
import { useChat } from './context';
import { t } from './text';
import type { Message } from './thread';

export function Branches({ message }: { message: Message }): JSX.Element | null {
  const chat = useChat();
  const siblings = chat.thread.value.siblings(message);
  if (siblings.length < 2) return null;
  const index = siblings.findIndex(({ id }) => id === message.id);
  const go = (step: number): void => {
    const next = siblings[index + step];
    if (next) chat.select(next.id);
  };
  const isBusy = chat.busy.value;
  return (
    <div class="branches">
      <IconButton icon="start" label={t('previousBranch')} disabled={isBusy || index === 0} onClick={() => go(-1)} />
      <span class="visually-hidden">{t('branchOf', { index: index + 1, total: siblings.length })}</span>
      <span aria-hidden="true">{`${formatCount(index + 1)}/${formatCount(siblings.length)}`}</span>
      <IconButton
        icon="end"
        label={t('nextBranch')}
        disabled={isBusy || index === siblings.length - 1}
        onClick={() => go(1)}
      />
    </div>
  );
}
