/** The prompt doctor. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useId, useMemo } from 'preact/hooks';
import { LabView } from '../../shell/lab-view';
import { useSession } from '../../ui/context';
import { Button, Choices, Panel } from '../../ui/kit';
import { ProblemCard } from '../../ui/problem-card';
import '../shared/lab.css';
import './doctor.css';
import { DoctorLab } from './lab';
import { LogReportPanel } from './log-panel';
import { FoundPanel, ModelPanel } from './panels';
import { SAMPLES } from './samples';
import { t } from './text';

export default function DoctorLabView(): JSX.Element {
  const session = useSession();
  const lab = useMemo(() => new DoctorLab(), []);
  const part = useSignal<'two' | 'log'>('two');
  const engine = session.engine.value;
  // What is shown follows the model: its template and its tokens.
  useEffect(() => {
    void lab.compare(engine);
  }, [lab, engine]);
  useEffect(() => () => lab.job.stop(), [lab]);
  const problem = lab.job.problem.value;
  return (
    <LabView lead={t('lead')}>
      <Choices
        label={t('what')}
        hideLabel
        options={[
          { value: 'two', label: t('two') },
          { value: 'log', label: t('log') },
        ]}
        value={part.value}
        onChange={(value) => {
          part.value = value;
          void (value === 'log' ? lab.examine() : lab.compare(engine));
        }}
      />
      {part.value === 'two' ? <TwoPrompts lab={lab} /> : <Log lab={lab} />}
      {problem && <ProblemCard problem={problem} onRetry={() => void lab.compare(engine)} />}
      {part.value === 'two' && lab.found.value && <FoundPanel found={lab.found.value} />}
      {part.value === 'two' && <ModelPanel view={lab.model.value} hasEngine={engine !== null} />}
      {part.value === 'log' && lab.report.value && <LogReportPanel report={lab.report.value} bad={lab.bad.value} />}
    </LabView>
  );
}

function TwoPrompts({ lab }: { lab: DoctorLab }): JSX.Element {
  const engine = useSession().engine.value;
  const names = {
    timestamp: t('sampleTime'),
    tools: t('sampleTools'),
    history: t('sampleHistory'),
    good: t('sampleGood'),
  };
  return (
    <Panel title={t('requests')} lead={t('requestsLead')}>
      <div class="samples">
        <span>{t('samples')}</span>
        {SAMPLES.map((sample) => (
          <Button key={sample.id} kind="quiet" onClick={() => void lab.take(sample, engine)}>
            {names[sample.id]}
          </Button>
        ))}
      </div>
      <div class="side-by-side">
        <Paste
          label={t('previous')}
          value={lab.previous.value}
          onInput={(text) => {
            lab.previous.value = text;
          }}
        />
        <Paste
          label={t('next')}
          value={lab.next.value}
          onInput={(text) => {
            lab.next.value = text;
          }}
        />
      </div>
      <div class="actions">
        <Button kind="primary" onClick={() => void lab.compare(engine)}>
          {t('compare')}
        </Button>
      </div>
    </Panel>
  );
}

function Log({ lab }: { lab: DoctorLab }): JSX.Element {
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    lab.log.value = await file.text();
    await lab.examine();
  };
  const id = useId();
  return (
    <Panel title={t('log')} lead={t('logLead')}>
      <Paste
        label={t('logText')}
        value={lab.log.value}
        onInput={(text) => {
          lab.log.value = text;
        }}
      />
      <div class="actions">
        <Button kind="primary" onClick={() => void lab.examine()}>
          {t('examine')}
        </Button>
        <label class="button" for={id}>
          {t('openLog')}
        </label>
        <input
          id={id}
          class="visually-hidden"
          type="file"
          accept=".jsonl,.json,.ndjson,.txt,.log"
          onChange={(event) => void read(event.currentTarget.files?.[0])}
        />
      </div>
    </Panel>
  );
}

function Paste({
  label,
  value,
  onInput,
}: {
  label: string;
  value: string;
  onInput: (text: string) => void;
}): JSX.Element {
  return (
    <label class="field">
      <span class="field-head">{label}</span>
      <textarea
        class="input paste"
        rows={9}
        spellcheck={false}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
