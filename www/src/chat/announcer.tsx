/**
 * Speaks to screen readers: that an answer has begun, each paragraph once it is complete, and how it ended.
 * The visible conversation is silent, because it changes with every token.
 */
import { useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { useSession } from '../ui/context';
import { useChat } from './context';
import type { Answer } from './turns';

export function Announcer(): null {
  const app = useChat();
  const session = useSession();
  const spoken = useRef({ turn: 0, numBlocks: 0, status: '' });

  useSignalEffect(() => {
    const turn = app.turns.value.at(-1);
    if (!turn) return;
    const answer = turn.answer.value;
    const before = spoken.current;
    const isNew = before.turn !== turn.id || answer.status === 'waiting';
    const numSpoken = isNew ? 0 : before.numBlocks;
    const text = nextAnnouncement(answer, numSpoken, isNew ? '' : before.status);
    const isOver = answer.status !== 'waiting' && answer.status !== 'streaming';
    const numComplete = isOver ? answer.blocks.length : Math.max(0, answer.blocks.length - 1);
    spoken.current = { turn: turn.id, numBlocks: Math.max(numSpoken, numComplete), status: answer.status };
    if (text !== '') session.announcement.value = text;
  });

  return null;
}

/** What to say about `answer` after `numSpoken` of its blocks were read and it was in `statusBefore`. */
export function nextAnnouncement(answer: Answer, numSpoken: number, statusBefore: string): string {
  const { status, blocks } = answer;
  if (status === 'waiting') return statusBefore === 'waiting' ? '' : 'Answering';
  const isStreaming = status === 'streaming';
  // The last block is still growing while streaming.
  const complete = blocks.slice(numSpoken, isStreaming ? -1 : undefined).map(({ text }) => text);
  if (!isStreaming && statusBefore !== status) complete.push(ENDINGS[status]);
  return complete.filter((text) => text !== '').join('\n');
}

const ENDINGS = { done: 'End of answer.', stopped: 'Stopped.', failed: '' } as const;
