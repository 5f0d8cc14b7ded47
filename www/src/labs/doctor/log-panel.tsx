/** What the prompt doctor found in a log. */
import type { JSX } from 'preact';
import { formatCount, formatPercent } from '../../i18n/format';
import { Panel, Readout, Readouts } from '../../ui/kit';
import { Table } from '../shared/plot';
import { causeText } from './causes';
import type { LogReport } from './log';
import type { BadLine } from './parse';
import { t } from './text';

/** Requests that the table lists, at most. */
const MOST_ROWS = 100;

export function LogReportPanel({ report, bad }: { report: LogReport; bad: readonly BadLine[] }): JSX.Element {
  const { findings, causes, total, reused } = report;
  const lost = causes.reduce((sum, cause) => sum + cause.lost, 0);
  const share = (part: number): number => (total > 0 ? part / total : 0);
  return (
    <>
      <Panel title={t('causes')} lead={causes.length > 0 ? t('causesLead') : t('noCauses')}>
        <Readouts>
          <Readout label={t('compared')} value={formatCount(findings.length)} />
          <Readout label={t('reused')} value={formatPercent(share(reused))} note={t('ofAll')} tone="good" />
          <Readout
            label={t('lost')}
            value={formatPercent(share(lost))}
            note={t('ofAll')}
            tone={lost > 0 ? 'bad' : 'plain'}
          />
        </Readouts>
        <ol class="causes">
          {causes.map(({ cause, count, lost: characters, example }) => (
            <li key={cause}>
              <h3>
                {causeText(cause).name}
                <span class="cause-cost">
                  {t('causeCost', { count, characters: formatCount(characters), line: example.line })}
                </span>
              </h3>
              {example.found.previous && example.found.next && (
                <p class="cause-example">
                  <del>{example.found.previous.text}</del> <ins>{example.found.next.text}</ins>
                </p>
              )}
              <p>{causeText(cause).advice}</p>
            </li>
          ))}
        </ol>
        {bad.length > 0 && (
          <p class="help">
            {t('badLines', {
              count: bad.length,
              lines: bad
                .slice(0, 8)
                .map(({ line }) => line)
                .join(', '),
            })}
          </p>
        )}
      </Panel>
      <Panel title={t('each')}>
        <section class="log-table" aria-label={`${t('each')}: ${t('line')}`} tabIndex={0}>
          <Table
            heads={[t('line'), t('against'), t('cause'), t('reused'), t('lost')]}
            rows={findings
              .slice(0, MOST_ROWS)
              .map(({ line, against, found }) => [
                String(line),
                String(against),
                causeText(found.cause).name,
                formatPercent(found.fraction.reused),
                formatCount(found.size.lost),
              ])}
          />
        </section>
      </Panel>
    </>
  );
}
