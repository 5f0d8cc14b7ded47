/** One answer: its Markdown, block by block, then what it cost and what can be done with it. */
import type { JSX } from 'preact';
import { memo } from 'preact/compat';
import { useState } from 'preact/hooks';
import { formatRate } from '../i18n/core';
import { formatCount, formatMs } from '../i18n/format';
import type { AnswerStats } from '../state/engine';
import { useSession } from '../ui/context';
import { Icon } from '../ui/kit';
import { copyText } from '../ui/kit/clipboard';
import { LoadingCard } from '../ui/loading-card';
import { ProblemCard } from '../ui/problem-card';
import { useChat } from './context';
import type { Block } from './markdown';
import type { Turn } from './turns';

/** The HTML was sanitised when the block was made. Memoised, so that finished blocks are not touched while streaming. */
const BlockView = memo(({ block }: { block: Block }) => <div dangerouslySetInnerHTML={{ __html: block.html }} />);

export function AnswerView({ turn, isLast }: { turn: Turn; isLast: boolean }): JSX.Element {
  const app = useChat();
  const { status, text, blocks, problem, stats } = turn.answer.value;
  const isOver = status !== 'waiting' && status !== 'streaming';
  return (
    <div class="answer">
      <h2 class="visually-hidden">Answer</h2>
      {status === 'waiting' && <Waiting />}
      {blocks.length > 0 && (
        <div class="prose">
          {blocks.map((block, index) => (
            <BlockView key={index} block={block} />
          ))}
        </div>
      )}
      {problem && <ProblemCard problem={problem} onRetry={() => app.regenerate()} isCurrent={isLast} />}
      {isOver && !(problem && text === '') && (
        <div class="answer-foot">
          {text !== '' && <CopyButton text={text} />}
          {isLast && status !== 'failed' && (
            <button
              type="button"
              class="icon-button"
              aria-label="Regenerate"
              title="Regenerate"
              onClick={() => app.regenerate()}
            >
              <Icon name="retry" />
            </button>
          )}
          {stats && <Stats stats={stats} />}
          {status === 'stopped' && <span class="note">Stopped</span>}
          {stats?.cutBy && status === 'done' && (
            <span class="note">{stats.cutBy === 'context' ? 'Cut: the context is full' : 'Cut at max tokens'}</span>
          )}
        </div>
      )}
    </div>
  );
}

function Waiting(): JSX.Element {
  const session = useSession();
  const state = session.loader.state.value;
  if (state.kind === 'loading') return <LoadingCard state={state} />;
  return (
    <p class="waiting">
      <i aria-hidden="true" />
      Reading your message
    </p>
  );
}

function Stats({ stats }: { stats: AnswerStats }): JSX.Element {
  return (
    <dl class="stats">
      {stats.decodeTokensPerS !== null && (
        <div>
          <dt class="visually-hidden">Speed</dt>
          <dd>{formatRate(stats.decodeTokensPerS)}</dd>
        </div>
      )}
      {stats.ttftMs !== null && (
        <div>
          <dt>
            <abbr title="Time to first token: from sending to the first words">TTFT</abbr>
          </dt>
          <dd>{formatMs(stats.ttftMs)}</dd>
        </div>
      )}
      <div>
        <dt class="visually-hidden">Length</dt>
        <dd>
          {formatCount(stats.answerTokens)} {stats.answerTokens === 1 ? 'token' : 'tokens'}
        </dd>
      </div>
      {stats.cachedTokens > 0 && (
        <div>
          <dt class="visually-hidden">Reused</dt>
          <dd>
            {formatCount(stats.cachedTokens)} of {formatCount(stats.promptTokens)} prompt tokens cached
          </dd>
        </div>
      )}
    </dl>
  );
}

function CopyButton({ text }: { text: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={isCopied ? 'Copied' : 'Copy answer'}
      title="Copy"
      onClick={() => void copy()}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
    </button>
  );
}
