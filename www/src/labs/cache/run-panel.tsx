/** An experiment: what is expected, what was measured, and the tokens. */
import type { JSX } from 'preact';
import { formatCount, formatMs, formatPercent } from '../../i18n/format';
import { Panel, Readout, Readouts } from '../../ui/kit';
import { BarPlot } from '../shared/plot';
import type { BarData } from '../shared/plot-data';
import { runsOf } from '../shared/token-runs';
import { TokenKey, Tokens } from '../shared/tokens';
import { describe, letter, missName } from './names';
import { type ExperimentRequest, type ExperimentRun, isAsExpected, isTight, savedMs } from './run';
import { t } from './text';

export function RunPanel({ run }: { run: ExperimentRun }): JSX.Element {
  const { name, before } = describe(run.id);
  const last = run.requests.filter(({ measured }) => measured !== null).length - 1;
  return (
    <Panel title={name} lead={before} class="run">
      {isTight(run) && <p class="warning">{t('tight', { needed: run.needed, pool: run.pool })}</p>}
      <table class="outcomes">
        <thead>
          <tr>
            <td />
            <th scope="col">{t('expect')}</th>
            <th scope="col">{t('measured')}</th>
            <th scope="col">{t('ttft')}</th>
          </tr>
        </thead>
        <tbody>
          {run.requests.map((request, index) => (
            <Outcome key={letter(index)} run={run} request={request} index={index} />
          ))}
        </tbody>
      </table>
      <Savings run={run} />
      {last >= 0 && <TtftPlot run={run} />}
      <div class="prompts">
        {run.requests.map((request, index) => (
          <PromptTokens key={letter(index)} request={request} name={t('prompt', { letter: letter(index) })} />
        ))}
      </div>
      <TokenKey />
      <p class="visually-hidden" aria-live="polite">
        {last >= 0 && spoken(run, last)}
      </p>
    </Panel>
  );
}

function spoken(run: ExperimentRun, index: number): string {
  const measured = run.requests[index]?.measured;
  const { name } = describe(run.id);
  if (!measured) return '';
  return t('spoken', { name, letter: letter(index), cached: measured.cachedTokens, prompt: measured.promptTokens });
}

function Outcome({
  run,
  request,
  index,
}: {
  run: ExperimentRun;
  request: ExperimentRequest;
  index: number;
}): JSX.Element {
  const { expected, measured } = request;
  const expectation =
    expected.like === null && index === 0
      ? t('expectCold')
      : t('expectTokens', {
          cached: expected.cachedTokens,
          prompt: expected.promptTokens,
          blocks: expected.fullBlocks,
          tail: expected.tailTokens,
        });
  return (
    <tr
      data-expected={expected.cachedTokens}
      data-measured={measured?.cachedTokens}
      data-prompt={measured?.promptTokens}
    >
      <th scope="row">{t('prompt', { letter: letter(index) })}</th>
      <td>{expectation}</td>
      <td>
        {measured ? (
          <>
            {t('measuredTokens', { cached: measured.cachedTokens, prompt: measured.promptTokens })}{' '}
            <Verdict run={run} request={request} />
          </>
        ) : (
          t('waiting')
        )}
      </td>
      <td>{measured ? formatMs(measured.ttftMs) : '–'}</td>
    </tr>
  );
}

function Verdict({ run, request }: { run: ExperimentRun; request: ExperimentRequest }): JSX.Element {
  const { measured, expected } = request;
  const isLess = (measured?.cachedTokens ?? 0) < expected.cachedTokens;
  const reason = measured?.miss ? missName(measured.miss.reason) : t('unknownReason');
  // In a pool that is too small, less is what was announced; why it was less is worth saying.
  if (isAsExpected(run, request) && !isLess) return <span class="verdict good">✓ {t('asExpected')}</span>;
  if (isTight(run) && isLess) return <span class="verdict">{reason}</span>;
  return <span class="verdict bad">{t('notAsExpected', { reason })}</span>;
}

function Savings({ run }: { run: ExperimentRun }): JSX.Element | null {
  const measured = run.requests.flatMap((request) => (request.measured ? [request.measured] : []));
  if (measured.length < 2) return null;
  const cached = measured.reduce((sum, one) => sum + one.cachedTokens, 0);
  const prompt = measured.reduce((sum, one) => sum + one.promptTokens, 0);
  const sooner = run.requests.reduce((sum, _, index) => sum + (savedMs(run, index) ?? 0), 0);
  // Times are what they are, busy machines included; what the tokens alone are worth says how much of it is chance.
  const [cold] = measured;
  const worthMs = cold && cold.promptTokens > 0 ? (cached * cold.ttftMs) / cold.promptTokens : 0;
  return (
    <Readouts label={t('saved')}>
      <Readout label={t('savedTokens')} value={formatCount(cached)} tone={cached > 0 ? 'good' : 'plain'} />
      <Readout
        label={t('savedMs')}
        value={`${sooner < 0 ? '−' : ''}${formatMs(Math.abs(sooner))}`}
        note={t('savedWorth', { ms: formatMs(worthMs) })}
      />
      <Readout
        label={t('hitRate')}
        value={formatPercent(prompt > 0 ? cached / prompt : 0)}
        note={t('hitRateNote', { cached, prompt })}
      />
    </Readouts>
  );
}

function TtftPlot({ run }: { run: ExperimentRun }): JSX.Element {
  const isWarm = ({ measured }: ExperimentRequest): boolean => (measured?.cachedTokens ?? 0) > 0;
  const times = (want: boolean): (number | null)[] =>
    run.requests.map((request) => (request.measured && isWarm(request) === want ? request.measured.ttftMs : null));
  const data: BarData = {
    isSingle: true,
    groups: run.requests.map((_, index) => letter(index)),
    series: [
      { label: t('cold'), colour: '--computed', values: times(false) },
      { label: t('warm'), colour: '--reused', values: times(true) },
    ],
  };
  return <BarPlot label={t('ttftPlot')} data={data} yLabel={t('ttft')} formatY={formatMs} height={190} />;
}

function PromptTokens({ request, name }: { request: ExperimentRequest; name: string }): JSX.Element {
  const { measured, expected, pieces, answerPieces } = request;
  const cached = measured?.cachedTokens ?? expected.cachedTokens;
  const runs = runsOf([...pieces, ...answerPieces], cached, pieces.length);
  return (
    <div class="prompt">
      <h3>
        {name}
        <span class="prompt-note">{measured ? t('measured') : t('expect')}</span>
      </h3>
      <Tokens label={name} runs={runs} />
    </div>
  );
}
