/** One answer: its Markdown, block by block, then what it cost and what can be done with it. */
import { Component, createRef, type JSX } from 'preact';
import { useState } from 'preact/hooks';
import { AnswerSources, useCitations } from '../documents/answer-sources';
import { type CitationOptions, decorateCitations } from '../documents/citations';
import { useSession } from '../ui/context';
import { IconButton } from '../ui/kit';
import { LoadingCard } from '../ui/loading-card';
import { ProblemCard } from '../ui/problem-card';
import { AnswerCost } from './answer-cost';
import { Branches } from './branches';
import { useChat } from './context';
import { CopyButton } from './copy-button';
import { EditBox } from './edit-box';
import { highlightIn } from './highlight';
import type { Block } from './markdown';
import { t } from './text';
import type { Message } from './thread';

interface BlockProps {
  readonly block: Block;
  /** Whether it is still being written; code is coloured once it is whole. */
  readonly isGrowing: boolean;
  /** What its numbers in brackets stand for; null where there are no sources. */
  readonly citations: CitationOptions | null;
}

/** The HTML was sanitised when the block was made. Finished blocks are not touched while the next ones are written. */
class BlockView extends Component<BlockProps> {
  private readonly element = createRef<HTMLDivElement>();

  override shouldComponentUpdate({ block, isGrowing, citations }: BlockProps): boolean {
    const { props } = this;
    return block !== props.block || isGrowing !== props.isGrowing || citations !== props.citations;
  }

  override componentDidMount(): void {
    this.highlight();
  }

  override componentDidUpdate(): void {
    this.highlight();
  }

  private highlight(): void {
    const element = this.element.current;
    if (element && this.props.citations) decorateCitations(element, this.props.citations);
    if (!this.props.isGrowing && element) void highlightIn(element);
  }

  render(): JSX.Element {
    return <div ref={this.element} dangerouslySetInnerHTML={{ __html: this.props.block.html }} />;
  }
}

export function AnswerView({ message, isLast }: { message: Message; isLast: boolean }): JSX.Element {
  const chat = useChat();
  const [isEditing, setEditing] = useState(false);
  const { status, text, problem, stats } = message.state.value;
  const blocks = message.blocks.value;
  const citations = useCitations(message);
  const isOver = status !== 'waiting' && status !== 'streaming';
  if (isEditing) {
    return (
      <EditBox
        label={t('editAnswer')}
        text={text}
        action={t('keepEdited')}
        onSave={(changed) => chat.edit(message, changed)}
        onClose={() => setEditing(false)}
      />
    );
  }
  return (
    <div class="answer">
      <h2 class="visually-hidden">{t('answer')}</h2>
      {status === 'waiting' && <Waiting message={message} />}
      {blocks.length > 0 && (
        <div class="prose">
          {blocks.map((block, index) => (
            <BlockView
              key={index}
              block={block}
              isGrowing={!isOver && index === blocks.length - 1}
              citations={citations}
            />
          ))}
        </div>
      )}
      {problem && (
        <ProblemCard
          problem={problem}
          onRetry={() => void chat.regenerate(message)}
          onNewChat={() => chat.newChat()}
          isCurrent={isLast}
        />
      )}
      {isOver && <AnswerSources message={message} />}
      {isOver && !(problem && text === '') && (
        <div class="answer-foot">
          <Branches message={message} />
          {text !== '' && <CopyButton text={text} label={t('copyAnswer')} />}
          <IconButton
            icon="retry"
            label={t('regenerate')}
            disabled={chat.busy.value}
            onClick={() => void chat.regenerate(message)}
          />
          {text !== '' && (
            <IconButton
              icon="edit"
              label={t('editAnswer')}
              disabled={chat.busy.value}
              onClick={() => setEditing(true)}
            />
          )}
          {stats && <AnswerCost stats={stats} />}
          {status === 'stopped' && <span class="note">{t('stoppedNote')}</span>}
          {status === 'interrupted' && <span class="note">{t('interrupted')}</span>}
          {stats?.cutBy && status === 'done' && (
            <span class="note">{stats.cutBy === 'context' ? t('cutContext') : t('cutMax')}</span>
          )}
        </div>
      )}
    </div>
  );
}

function Waiting({ message }: { message: Message }): JSX.Element {
  const state = useSession().loader.state.value;
  const progress = useChat().answering.reading.value.get(message.id);
  if (state.kind === 'loading') return <LoadingCard state={state} />;
  return (
    <p class="waiting">
      <i aria-hidden="true" />
      {progress ? t('readingTokens', { done: progress.done, total: progress.total }) : t('reading')}
    </p>
  );
}
