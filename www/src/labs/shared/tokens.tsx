/** Tokens side by side, coloured by what became of them; a line stands where a block ends. */
import type { JSX } from 'preact';
import { t } from './text';
import { BLOCK_SIZE, elide, type TokenRun } from './token-runs';
import './tokens.css';

export interface TokensProps {
  readonly label: string;
  readonly runs: readonly TokenRun[];
  /** Tokens kept at either end of a long run. */
  readonly keep?: number;
}

export function Tokens({ label, runs, keep = 28 }: TokensProps): JSX.Element {
  return (
    <section class="tokens" aria-label={label} tabIndex={0}>
      {elide(runs, keep).map((part) =>
        part.kind === 'gap' ? (
          <span key={`gap ${part.of}`} class={`token-gap ${part.of}`}>
            {t('tokensHidden', { count: part.count })}
          </span>
        ) : (
          <span key={part.start} class={`token-run ${part.kind}`}>
            <span class="visually-hidden">{t(part.kind)}</span>
            {part.texts.map((text, index) => (
              <TokenMark key={part.start + index} text={text} position={part.start + index} />
            ))}
          </span>
        ),
      )}
    </section>
  );
}

function TokenMark({ text, position }: { text: string; position: number }): JSX.Element {
  const isEnd = (position + 1) % BLOCK_SIZE === 0;
  const lines = text.split('\n');
  return (
    <span class={isEnd ? 'token block-end' : 'token'} title={String(position)}>
      {lines.map((line, index) => (
        <span key={index}>
          {index > 0 && <span class="line-break" aria-hidden="true" />}
          {line}
        </span>
      ))}
    </span>
  );
}

/** What the colours mean. */
export function TokenKey(): JSX.Element {
  return (
    <ul class="key">
      <li class="reused">{t('reused')}</li>
      <li class="computed">{t('computed')}</li>
      <li class="generated">{t('generated')}</li>
      <li class="block-key">{t('blockEnd')}</li>
    </ul>
  );
}
