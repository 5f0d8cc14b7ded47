/** The experiments on where passages stand: both orders side by side, before and after. */
import type { Engine } from 'pagewise';
import type { JSX } from 'preact';
import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import { documentsOf } from '../../documents/context';
import { t } from '../../documents/text';
import { lang } from '../../i18n';
import { useSession } from '../../ui/context';
import { Button, Panel, Slider } from '../../ui/kit';
import { ProblemCard } from '../../ui/problem-card';
import { t as shared } from '../shared/text';
import { OrderLab } from './lab';
import { describe } from './names';
import { EXPERIMENTS, type ExperimentId } from './order';
import { OrderResults } from './order-results';
import { defaultQuestions } from './questions';

/** Questions of an experiment: more say the same and take longer. */
const MAX_QUESTIONS = 4;

export function OrderPanel({ engine }: { engine: Engine }): JSX.Element {
  const session = useSession();
  const id = useId();
  const library = documentsOf(session);
  const lab = useMemo(() => new OrderLab(engine, library), [engine, library]);
  useEffect(() => {
    const stop = (): void => lab.job.stop();
    session.beforeLoad.add(stop);
    return () => {
      session.beforeLoad.delete(stop);
      lab.close();
    };
  }, [lab, session]);
  const [written, setWritten] = useState<string | null>(null);
  const [made, setMade] = useState<readonly string[]>([]);
  const [documents, language] = [library.list.value, lang.value];
  useEffect(() => {
    let isCurrent = true;
    void defaultQuestions(library, language).then((questions) => {
      if (isCurrent) setMade(questions);
    });
    return () => {
      isCurrent = false;
    };
  }, [library, documents, language]);
  const text = written ?? made.join('\n');
  const questions = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(0, MAX_QUESTIONS);
  const isBusy = lab.job.busy.value;
  const canRun = !isBusy && questions.length > 0 && (library.list.value?.length ?? 0) > 0;
  const start = (experiment: ExperimentId): void => void lab.start(experiment, questions);
  const current = lab.experiment.value;
  const problem = lab.job.problem.value;
  return (
    <>
      <Panel title={t('order')} lead={t('orderLead')}>
        <label class="field" for={id}>
          <span class="field-head">{t('questions')}</span>
        </label>
        <textarea
          id={id}
          class="input"
          rows={3}
          value={text}
          disabled={isBusy}
          onInput={(event) => setWritten(event.currentTarget.value)}
        />
        <SizeSlider lab={lab} />
        <ul class="experiments">
          {EXPERIMENTS.map((one) => (
            <li key={one}>
              <button
                type="button"
                class="experiment"
                disabled={!canRun}
                aria-pressed={current?.id === one}
                onClick={() => start(one)}
              >
                {describe(one).name}
              </button>
            </li>
          ))}
        </ul>
        <p class="help" role="status">
          {lab.isEmpty.value ? t('nothingToAsk') : (library.list.value?.length ?? 0) === 0 ? t('needsDocuments') : ''}
        </p>
      </Panel>
      {problem && <ProblemCard problem={problem} onRetry={() => current && start(current.id)} />}
      {current && <OrderResults experiment={current} />}
      {isBusy && (
        <div class="lab-stop">
          <Button icon="stop" onClick={() => lab.job.stop()}>
            {shared('stop')}
          </Button>
        </div>
      )}
    </>
  );
}

function SizeSlider({ lab }: { lab: OrderLab }): JSX.Element {
  const max = Math.max(96, Math.floor(lab.limit() / 32) * 32);
  const tokens = Math.min(lab.tokens.value, max);
  return (
    <div class="experiment-size">
      <Slider
        label={t('promptSize')}
        min={96}
        max={max}
        step={32}
        value={tokens}
        shown={t('tokens', { count: tokens })}
        disabled={lab.job.busy.value}
        onChange={(value) => {
          lab.tokens.value = value;
        }}
      />
    </div>
  );
}
