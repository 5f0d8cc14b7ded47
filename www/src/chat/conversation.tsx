/** The scrolling middle of the page: turns, or the empty state, or why nothing can run. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useSession } from '../ui/context';
import { Icon } from '../ui/kit';
import { copyCodeBlock } from '../ui/kit/clipboard';
import { LoadingCard } from '../ui/loading-card';
import { ProblemCard } from '../ui/problem-card';
import { AnswerView } from './answer';
import { useChat } from './context';
import { Empty } from './empty';
import type { Turn } from './turns';

/** Closer to the end than this counts as being there. */
const END_SLACK_PX = 48;

export function Conversation(): JSX.Element {
  const app = useChat();
  const turns = app.turns.value;
  const scroller = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const numTurns = turns.length;

  const scrollToEnd = (): void => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
    isAtEnd.value = true;
  };

  // Follows the end while content grows, unless the visitor scrolled away from it.
  useEffect(() => {
    if (!content.current || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.peek() && app.turns.peek().length > 0) scrollToEnd();
    });
    observer.observe(content.current);
    return () => observer.disconnect();
  }, []);

  // A new question is always shown.
  useEffect(() => {
    if (numTurns > 0) scrollToEnd();
  }, [numTurns]);

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
      aria-label="Conversation"
      // Finished paragraphs are announced by Announcer; this region would read every few letters.
      aria-live="off"
      // It scrolls, so the keyboard has to reach it.
      tabIndex={0}
      onScroll={onScroll}
      onClick={(event) => void copyCodeBlock(event)}
    >
      <div ref={content} class="column">
        {numTurns === 0 ? (
          <Start />
        ) : (
          turns.map((turn, index) => <TurnView key={turn.id} turn={turn} isLast={index === numTurns - 1} />)
        )}
        {numTurns > 0 && <BetweenTurns last={turns[numTurns - 1]} />}
      </div>
      {numTurns > 0 && !isAtEnd.value && (
        <div class="to-end">
          <button type="button" class="icon-button" aria-label="Scroll to the end" onClick={scrollToEnd}>
            <Icon name="down" />
          </button>
        </div>
      )}
    </section>
  );
}

function TurnView({ turn, isLast }: { turn: Turn; isLast: boolean }): JSX.Element {
  return (
    <article class="turn">
      <h2 class="visually-hidden">You</h2>
      <div class="question">{turn.question}</div>
      <AnswerView turn={turn} isLast={isLast} />
    </article>
  );
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

/** A model that is loaded, or failed to, while a conversation is on screen and no answer waits for it. */
function BetweenTurns({ last }: { last: Turn | undefined }): JSX.Element | null {
  const session = useSession();
  const state = session.loader.state.value;
  const answer = last?.answer.value;
  if (state.kind === 'loading' && answer?.status !== 'waiting') {
    return (
      <div class="turn">
        <LoadingCard state={state} />
      </div>
    );
  }
  if (state.kind === 'failed' && answer?.problem !== state.problem && answer?.status !== 'waiting') {
    return (
      <div class="turn">
        <ProblemCard problem={state.problem} onRetry={() => void session.loadWanted()} />
      </div>
    );
  }
  return null;
}
