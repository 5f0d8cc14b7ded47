/** An experiment: what is expected of each order, what was measured, and the tokens of the last prompts. */
import type { JSX } from 'preact';
import { t } from '../../documents/text';
import { formatCount, formatMs, formatPercent } from '../../i18n/format';
import { Panel, Readout, Readouts } from '../../ui/kit';
import { BarPlot } from '../shared/plot';
import type { BarData } from '../shared/plot-data';
import { runsOf } from '../shared/token-runs';
import { TokenKey, Tokens } from '../shared/tokens';
import type { Experiment } from './lab';
import { describe, orderName } from './names';
import { isBetter, type OrderRequest, type OrderRun, totalsOf } from './order';

export function OrderResults({ experiment }: { experiment: Experiment }): JSX.Element {
  const { id, runs, unfit } = experiment;
  const { name, before, after } = describe(id);
  const why = whyUnfit(experiment);
  const isDone = runs.every(({ requests }) => requests.every(({ measured }) => measured !== null));
  const hasAny = runs.some(({ requests }) => requests.some(({ measured }) => measured !== null));
  return (
    <Panel title={name} lead={unfit ? why : before} class="run">
      {!unfit && why !== '' && <p class="help">{why}</p>}
      <table class="outcomes orders" data-done={isDone}>
        <thead>
          <tr>
            <td />
            <th scope="col">{t('passagesAt')}</th>
            <th scope="col">{t('expected')}</th>
            <th scope="col">{t('measured')}</th>
            <th scope="col">{t('ttft')}</th>
          </tr>
        </thead>
        {runs.map((run) => (
          <tbody key={run.order} data-order={run.order}>
            <tr class="order-head">
              <th scope="rowgroup" colSpan={5}>
                {orderName(run.order)}
              </th>
            </tr>
            {run.requests.map((request, index) => (
              <RequestRow key={index} request={request} index={index} />
            ))}
          </tbody>
        ))}
      </table>
      {hasAny && <Totals runs={runs} />}
      {hasAny && <TtftPlot runs={runs} />}
      <div class="prompts">
        {runs.map((run) => (
          <LastPrompt key={run.order} run={run} />
        ))}
      </div>
      <TokenKey />
      <p class="order-after" aria-live="polite">
        {isDone && `${unfit ? t('showsNothing') : isBetter(runs) ? after : t('noDifference')} ${spoken(runs)}`}
      </p>
    </Panel>
  );
}

/** Which questions are missing, and why the others say nothing; empty where all is well. */
function whyUnfit({ unfit, unanswered }: Experiment): string {
  const missing = unanswered.length > 0 ? t('foundNothing', { questions: unanswered.map(quoted).join(' ') }) : '';
  if (unfit === null) return missing;
  return [t(unfit === 'few' ? 'unfitFew' : 'unfitSame'), missing, t('unfitAdvice')]
    .filter((one) => one !== '')
    .join(' ');
}

const quoted = (question: string): string => t('quoted', { question });

function spoken(runs: readonly OrderRun[]): string {
  return runs
    .map((run) => {
      const { cached, prompt } = totalsOf(run);
      return t('spoken', { order: orderName(run.order), cached, prompt });
    })
    .join(' ');
}

function RequestRow({ request, index }: { request: OrderRequest; index: number }): JSX.Element {
  const { expected, measured, passagesAt, asked } = request;
  const isAsExpected =
    measured?.cachedTokens === expected.cachedTokens && measured.promptTokens === expected.promptTokens;
  return (
    <tr
      data-at={passagesAt}
      data-expected={expected.cachedTokens}
      data-measured={measured?.cachedTokens}
      data-prompt={measured?.promptTokens}
      data-passages={asked.sources.map(({ passage }) => passage).join(' ')}
    >
      <th scope="row" title={asked.question}>
        {t('questionNumber', { number: index + 1 })}
      </th>
      <td>{t('position', { position: passagesAt })}</td>
      <td>{t('tokensOf', { cached: expected.cachedTokens, prompt: expected.promptTokens })}</td>
      <td>
        {measured ? (
          <>
            {t('tokensOf', { cached: measured.cachedTokens, prompt: measured.promptTokens })}{' '}
            {isAsExpected ? (
              <span class="verdict good">✓ {t('asExpected')}</span>
            ) : (
              <span class="verdict bad">{t('notAsExpected')}</span>
            )}
          </>
        ) : (
          t('waiting')
        )}
      </td>
      <td>{measured ? formatMs(measured.ttftMs) : '–'}</td>
    </tr>
  );
}

function Totals({ runs }: { runs: readonly OrderRun[] }): JSX.Element {
  return (
    <Readouts label={t('reusedInAll')}>
      {runs.map((run, index) => {
        const { cached, prompt, laterTtftMs } = totalsOf(run);
        const note = t('totalNote', {
          cached,
          computed: prompt - cached,
          ttft: laterTtftMs === null ? '–' : formatMs(laterTtftMs),
        });
        return (
          <Readout
            key={run.order}
            label={orderName(run.order)}
            value={prompt > 0 ? formatPercent(cached / prompt) : formatCount(0)}
            note={note}
            tone={index === runs.length - 1 && isBetter(runs) ? 'good' : 'plain'}
          />
        );
      })}
    </Readouts>
  );
}

function TtftPlot({ runs }: { runs: readonly OrderRun[] }): JSX.Element {
  const colours = ['--computed', '--reused'];
  const data: BarData = {
    groups: (runs[0]?.requests ?? []).map((_, index) => t('questionNumber', { number: index + 1 })),
    series: runs.map(({ order, requests }, index) => ({
      label: orderName(order),
      colour: colours[index] ?? '--computed',
      values: requests.map(({ measured }) => measured?.ttftMs ?? null),
    })),
  };
  return <BarPlot label={t('ttftPlot')} data={data} yLabel={t('ttft')} formatY={formatMs} height={190} />;
}

/** The last prompt of an order: by then everything that can be reused was computed once. */
function LastPrompt({ run }: { run: OrderRun }): JSX.Element | null {
  const last = run.requests.at(-1);
  if (!last) return null;
  const name = t('lastPrompt', { order: orderName(run.order) });
  const runs = runsOf(last.pieces, last.measured?.cachedTokens ?? last.expected.cachedTokens, last.pieces.length);
  return (
    <div class="prompt">
      <h3>
        {name}
        <span class="prompt-note">{last.measured ? t('measured') : t('expected')}</span>
      </h3>
      <Tokens label={name} runs={runs} />
    </div>
  );
}
