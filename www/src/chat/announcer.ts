/**
 * Speaks to screen readers: that an answer has begun, each paragraph once it is complete, and how it ended.
 * The visible conversation is silent, because it changes with every token.
 */
import { useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { useSession } from '../ui/context';
import { useChat } from './context';
import type { Block } from './markdown';
import type { AnswerStatus } from './records';
import { t } from './text';

export function Announcer(): null {
  const session = useSession();
  const chat = useChat();
  const spoken = useRef({ message: '', numBlocks: 0, status: '' });

  useSignalEffect(() => {
    const message = chat.thread.value.path.value.at(-1);
    if (message?.role !== 'assistant') return;
    const { status } = message.state.value;
    const before = spoken.current;
    const isNew = before.message !== message.id || status === 'waiting';
    // An old answer that is opened is not read out.
    if (isNew && status !== 'waiting' && status !== 'streaming') {
      spoken.current = { message: message.id, numBlocks: 0, status };
      return;
    }
    const blocks = message.blocks.value;
    const numSpoken = isNew ? 0 : before.numBlocks;
    const text = nextAnnouncement({ status, blocks }, numSpoken, isNew ? '' : before.status);
    const isOver = status !== 'waiting' && status !== 'streaming';
    const numComplete = isOver ? blocks.length : Math.max(0, blocks.length - 1);
    spoken.current = { message: message.id, numBlocks: Math.max(numSpoken, numComplete), status };
    if (text !== '') session.announcement.value = text;
  });
  return null;
}

/** What to say about an answer after `numSpoken` of its blocks were read and it was in `statusBefore`. */
export function nextAnnouncement(
  { status, blocks }: { status: AnswerStatus; blocks: readonly Pick<Block, 'text'>[] },
  numSpoken: number,
  statusBefore: string,
): string {
  if (status === 'waiting') return statusBefore === 'waiting' ? '' : t('answering');
  const isStreaming = status === 'streaming';
  // The last block is still growing while streaming.
  const complete = blocks.slice(numSpoken, isStreaming ? -1 : undefined).map(({ text }) => text);
  if (status === 'done' && statusBefore !== status) complete.push(t('endOfAnswer'));
  if (status === 'stopped' && statusBefore !== status) complete.push(t('stopped'));
  if (status === 'interrupted' && statusBefore !== status) complete.push(t('interrupted'));
  return complete.filter((text) => text !== '').join('\n');
}
