/** How full the context is, what happens when it is full, and the summary that stands for what was cut. */
import type { JSX } from 'preact';
import { formatCount, formatPercent } from '../i18n/format';
import { Choices, Dialog, Slider } from '../ui/kit';
import { useChat } from './context';
import { GaugeBar } from './gauge-bar';
import type { SummaryRecord } from './records';
import { t } from './text';

export default function BudgetDialog(): JSX.Element {
  const chat = useChat();
  const { budget } = chat.thread.value.record.value;
  return (
    <Dialog
      title={t('context')}
      shape="sheet"
      onClose={() => {
        chat.dialog.value = null;
      }}
    >
      <section class="group">
        <ContextReading />
      </section>
      <section class="group">
        <h3>{t('budget')}</h3>
        <p class="help">{t('budgetHelp')}</p>
        <div class="field">
          <Choices
            label={t('overflow')}
            options={[
              { value: 'error', label: t('overflowError') },
              { value: 'drop_oldest_turns', label: t('overflowDrop') },
              { value: 'summarize', label: t('overflowSummarize') },
            ]}
            value={budget.overflow}
            onChange={(overflow) => chat.setBudget({ ...budget, overflow })}
          />
        </div>
        <Slider
          label={t('recentTurns')}
          min={1}
          max={12}
          step={1}
          value={budget.keepTurns}
          shown={t('turns', { count: budget.keepTurns })}
          disabled={budget.overflow === 'error'}
          onChange={(keepTurns) => chat.setBudget({ ...budget, keepTurns })}
        />
        <Slider
          label={t('cutTo')}
          min={0.1}
          max={1}
          step={0.05}
          value={budget.cutTo}
          shown={formatPercent(budget.cutTo)}
          disabled={budget.overflow === 'error'}
          onChange={(cutTo) => chat.setBudget({ ...budget, cutTo })}
        />
      </section>
      {budget.overflow === 'summarize' && (
        <section class="group">
          <h3>{t('summary')}</h3>
          <SummaryEditor />
        </section>
      )}
    </Dialog>
  );
}

function ContextReading(): JSX.Element {
  const chat = useChat();
  const model = chat.model();
  const reading = chat.gauge.reading.value;
  const report = chat.budgets.reports.value.get(chat.thread.value.id);
  if (!model || !reading) return <p class="help">{t('contextNoModel')}</p>;
  const { promptTokens, cachedTokens, contextLength } = reading;
  const free = Math.max(0, contextLength - promptTokens);
  const kept = Math.min(free, chat.session.settings.value.maxTokens);
  const rows = [
    ['reused', t('inCache'), cachedTokens],
    ['computed', t('toCompute'), promptTokens - cachedTokens],
    ['kept', t('keptForAnswer'), kept],
    ['free', t('free'), free - kept],
  ] as const;
  return (
    <>
      <p class="big-number">{t('contextOf', { used: promptTokens, total: contextLength })}</p>
      <GaugeBar used={promptTokens} cached={cachedTokens} kept={kept} total={contextLength} />
      <dl class="legend">
        {rows.map(([kind, label, tokens]) => (
          <div key={kind} class={kind}>
            <dt>{label}</dt>
            <dd>{formatCount(tokens)}</dd>
          </div>
        ))}
      </dl>
      {report !== undefined && report.numReplaced > 0 && <p>{t('notSent', { count: report.numReplaced })}</p>}
      <p class="help">{t('contextHelp')}</p>
    </>
  );
}

const PARTS = [
  ['conversation', 'summaryText'],
  ['profile', 'profile'],
  ['task', 'taskState'],
] as const;

function SummaryEditor(): JSX.Element {
  const chat = useChat();
  const { summary } = chat.thread.value.record.value;
  if (!summary) return <p class="help">{t('summaryNone')}</p>;
  const set = (change: Partial<SummaryRecord>): void => chat.setSummary({ ...summary, ...change });
  return (
    <>
      {PARTS.map(([part, label]) => (
        <label key={part} class="field">
          <span class="field-head">{t(label)}</span>
          <textarea
            class="input"
            rows={3}
            value={summary[part]}
            onChange={(event) => set({ [part]: event.currentTarget.value })}
          />
        </label>
      ))}
      <p class="help">{t('summaryHelp')}</p>
    </>
  );
}
