/** What an answer cost: tokens cached, computed and generated, time to the first token, speed. */
import type { JSX } from 'preact';
import { formatRate } from '../i18n/core';
import { formatCount, formatMs } from '../i18n/format';
import type { AnswerStats } from '../state/engine';
import { t } from './text';

export function AnswerCost({ stats }: { stats: AnswerStats }): JSX.Element {
  const { promptTokens, cachedTokens, answerTokens, ttftMs, decodeTokensPerS } = stats;
  const computed = promptTokens - cachedTokens;
  const miss = missText(stats.miss);
  return (
    <dl class="stats" aria-label={t('cost')}>
      <Cell kind="reused" label={t('cached')} help={t('cachedHelp')} value={formatCount(cachedTokens)} />
      <Cell
        kind="computed"
        label={t('computed')}
        help={miss ? `${t('computedHelp')}\n${miss}` : t('computedHelp')}
        value={formatCount(computed)}
      />
      <Cell kind="generated" label={t('generated')} help={t('generatedHelp')} value={formatCount(answerTokens)} />
      {ttftMs !== null && <Cell label={t('ttft')} help={t('ttftHelp')} value={formatMs(ttftMs)} />}
      {decodeTokensPerS !== null && (
        <div title={t('speed')}>
          <dt class="visually-hidden">{t('speed')}</dt>
          <dd>{formatRate(decodeTokensPerS)}</dd>
        </div>
      )}
    </dl>
  );
}

interface CellProps {
  readonly kind?: 'reused' | 'computed' | 'generated';
  readonly label: string;
  readonly help: string;
  readonly value: string;
}

function Cell({ kind, label, help, value }: CellProps): JSX.Element {
  return (
    <div class={kind} title={help}>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function missText(miss: AnswerStats['miss']): string {
  if (!miss) return '';
  const { position } = miss;
  switch (miss.reason) {
    case 'cold':
      return t('missCold', { position });
    case 'evicted':
      return t('missEvicted', { position });
    case 'expired':
      return t('missExpired', { position });
    case 'differs':
      return t('missDiffers', { position });
    case 'template_changed':
      return t('missTemplate', { position });
    default:
      return t('missOther');
  }
}
