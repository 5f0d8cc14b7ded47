/** The scrolling middle of the chat: messages, or the empty state, or why nothing can run. */
import { type ReadonlySignal, useSignal } from '@preact/signals';
import { Component, type JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useSession } from '../ui/context';
import { IconButton } from '../ui/kit';
import { copyCodeBlock } from '../ui/kit/clipboard';
import { LoadingCard } from '../ui/loading-card';
import { ProblemCard } from '../ui/problem-card';
import { AnswerView } from './answer';
import { useChat } from './context';
import { Empty } from './empty';
import { groupsOf, isWhole, useNear } from './nearness';
import { QuestionView } from './question';
import { t } from './text';
import type { Message } from './thread';

/** Closer to the end than this counts as being there. */
const END_SLACK_PX = 48;
/** So many groups at the end are whole from the beginning: they are what is seen first. */
const NUM_WHOLE_GROUPS = 2;

export function Conversation(): JSX.Element {
  const chat = useChat();
  const thread = chat.thread.value;
  const path = thread.path.value;
  const scroller = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const last = path.at(-1);

  const scrollToEnd = (): void => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
    isAtEnd.value = true;
  };

  // Follows the end while content grows, unless the visitor scrolled away from it.
  useEffect(() => {
    if (!content.current || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.peek() && chat.thread.peek().path.peek().length > 0) scrollToEnd();
    });
    observer.observe(content.current);
    return () => observer.disconnect();
  }, []);

  // Another conversation and a new question are shown from their end; another branch leaves the place as it is.
  const newest = useRef({ thread: '', created: 0 });
  useEffect(() => {
    const before = newest.current;
    const created = last?.created ?? 0;
    newest.current = {
      thread: thread.id,
      created: before.thread === thread.id ? Math.max(before.created, created) : created,
    };
    if (last && (before.thread !== thread.id || created > before.created)) scrollToEnd();
  }, [thread, last]);

  const onScroll = (): void => {
    const element = scroller.current;
    if (!element) return;
    isAtEnd.value = element.scrollHeight - element.scrollTop - element.clientHeight < END_SLACK_PX;
  };

  return (
    <section
      ref={scroller}
      class="conversation"
      role="log"
      aria-label={t('conversation')}
      // Finished paragraphs are announced by Announcer; this region would read every few letters.
      aria-live="off"
      // It scrolls, so the keyboard has to reach it.
      tabIndex={0}
      onScroll={onScroll}
      onClick={(event) => void copyCodeBlock(event)}
    >
      <div ref={content} class="column">
        {path.length === 0 ? (
          <Start />
        ) : (
          groupsOf(path).map((group, index, all) => (
            <Group key={group[0]?.id} messages={group} isEnd={index >= all.length - NUM_WHOLE_GROUPS} last={last} />
          ))
        )}
        {last && <BetweenTurns last={last} />}
      </div>
      {path.length > 0 && <ToEnd isAtEnd={isAtEnd} onClick={scrollToEnd} />}
    </section>
  );
}

/** On its own, so that coming to the end and leaving it draws nothing else again. */
function ToEnd({ isAtEnd, onClick }: { isAtEnd: ReadonlySignal<boolean>; onClick: () => void }): JSX.Element | null {
  if (isAtEnd.value) return null;
  return (
    <div class="to-end">
      <IconButton icon="down" label={t('toEnd')} onClick={onClick} />
    </div>
  );
}

interface GroupProps {
  readonly messages: readonly Message[];
  /** Whether it is what is seen first: its messages are whole from the beginning. */
  readonly isEnd: boolean;
  readonly last: Message | undefined;
}

/**
 * Neighbouring messages, which come near together: the browser watches a few groups, not a thousand messages. Drawn again only
 * when one of its messages is another, or is the last no more.
 */
class Group extends Component<GroupProps> {
  override shouldComponentUpdate({ messages, isEnd, last }: GroupProps): boolean {
    const before = this.props;
    const isSame =
      messages.length === before.messages.length && messages.every((one, at) => one === before.messages[at]);
    const hadLast = before.last !== undefined && before.messages.includes(before.last);
    return !isSame || isEnd !== before.isEnd || (last !== before.last && (hadLast || messages.at(-1) === last));
  }

  render(): JSX.Element {
    const { messages, isEnd, last } = this.props;
    return <Turns messages={messages} isEnd={isEnd} last={last} />;
  }
}

function Turns({ messages, isEnd, last }: GroupProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const wholeness = useNear(element, messages.length, isEnd);
  return (
    <div ref={element} class="turns">
      {messages.map((message, index) => (
        <article key={message.id} class={message.role === 'user' ? 'turn mine' : 'turn'}>
          {isWhole(wholeness, index, messages.length) || message === last ? (
            <Whole message={message} isLast={message === last} />
          ) : (
            <Outline message={message} />
          )}
        </article>
      ))}
    </div>
  );
}

function Whole({ message, isLast }: { message: Message; isLast: boolean }): JSX.Element {
  return message.role === 'user' ? (
    <QuestionView message={message} />
  ) : (
    <AnswerView message={message} isLast={isLast} />
  );
}

/** A message that nobody has come near yet. */
function Outline({ message }: { message: Message }): JSX.Element {
  return <div class={message.role === 'user' ? 'question' : 'outline'}>{message.state.value.text}</div>;
}

/** Before the first message: what is missing, what is loading, or what this is. */
function Start(): JSX.Element {
  const session = useSession();
  const gpu = session.gpu.value;
  const state = session.loader.state.value;
  if (gpu.kind !== 'ok' && gpu.kind !== 'checking') {
    return (
      <div class="screen">
        <ProblemCard problem={{ code: gpu.kind, detail: '' }} onRetry={() => location.reload()} />
      </div>
    );
  }
  if (state.kind === 'failed') {
    return (
      <div class="screen">
        <ProblemCard problem={state.problem} onRetry={() => void session.loadWanted()} />
      </div>
    );
  }
  return <Empty />;
}

/** A model that is loading, or failed to, while a conversation is on screen and no answer waits for it. */
function BetweenTurns({ last }: { last: Message }): JSX.Element | null {
  const session = useSession();
  const state = session.loader.state.value;
  const { status, problem } = last.state.value;
  if (state.kind === 'loading' && status !== 'waiting') {
    return (
      <div class="turn">
        <LoadingCard state={state} />
      </div>
    );
  }
  if (state.kind === 'failed' && problem !== state.problem && status !== 'waiting') {
    return (
      <div class="turn">
        <ProblemCard problem={state.problem} onRetry={() => void session.loadWanted()} />
      </div>
    );
  }
  return null;
}
