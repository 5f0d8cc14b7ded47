/** The memory lab: what keys and values take, and who fits. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { formatBytes, formatCount } from '../../i18n/format';
import { LabView } from '../../shell/lab-view';
import { Panel, Readout, Readouts } from '../../ui/kit';
import { LinePlot } from '../shared/plot';
import type { PlotData, PlotSeries } from '../shared/plot-data';
import '../shared/lab.css';
import {
  calculate,
  contextsUpTo,
  growth,
  KV_FORMATS,
  type KvFormatName,
  type MemoryInput,
  type MemoryResult,
} from './calculate';
import { Controls } from './controls';
import { presetOf } from './presets';
import { t } from './text';

const COLOURS: Readonly<Record<KvFormatName, string>> = {
  f32: '--preempted',
  f16: '--computed',
  q8_0: '--generated',
  q4_0: '--reused',
};

const START: MemoryInput = {
  preset: presetOf('llama3.1-8b'),
  contextLength: 8192,
  users: 16,
  kv: 'f16',
  weights: 'f16',
  gpuBytes: 80e9,
  sharedTokens: 0,
};

export default function MemoryLab(): JSX.Element {
  const input = useSignal(START);
  const result = useSignal<MemoryResult | null>(null);
  const plot = useSignal<PlotData | null>(null);
  const { preset, contextLength } = input.value;
  useEffect(() => {
    let isCurrent = true;
    void calculate(input.value).then((found) => {
      if (isCurrent) result.value = found;
    });
    return () => {
      isCurrent = false;
    };
  }, [input.value]);
  useEffect(() => {
    let isCurrent = true;
    const contexts = contextsUpTo(preset.contextLength, 16, preset.sliding?.window ?? null);
    void growth(preset, contexts).then((lines) => {
      if (isCurrent) plot.value = { x: contexts, series: KV_FORMATS.map((kv) => line(kv, lines.get(kv) ?? [])) };
    });
    return () => {
      isCurrent = false;
    };
  }, [preset]);
  const change = (part: Partial<MemoryInput>): void => {
    const next = { ...input.value, ...part };
    const context = Math.min(next.contextLength, next.preset.contextLength);
    input.value = { ...next, contextLength: context, sharedTokens: Math.min(next.sharedTokens, context) };
  };
  return (
    <LabView lead={t('lead')}>
      <Panel title={t('settings')}>
        <Controls input={input.value} onChange={change} />
      </Panel>
      {result.value && <Results input={input.value} result={result.value} />}
      <Panel title={t('growth', { model: preset.name })} lead={t('growthLead')}>
        {plot.value && (
          <LinePlot
            label={t('growthPlot', { model: preset.name })}
            data={plot.value}
            xLabel={t('context')}
            yLabel={t('kvBytes')}
            formatX={formatCount}
            formatY={formatBytes}
          />
        )}
      </Panel>
      <Panel title={t('errors')}>
        <div class="claims">
          <Claim wrong={t('wrongSquare')} right={t('rightSquare', rightSquare(input.value, result.value))} />
          <Claim wrong={t('wrongQuant')} right={t('rightQuant')} />
        </div>
      </Panel>
      <p class="visually-hidden" aria-live="polite">
        {result.value && t('spoken', { users: result.value.usersThatFit, context: contextLength })}
      </p>
    </LabView>
  );
}

function line(kv: KvFormatName, values: number[]): PlotSeries {
  return { label: kv, colour: COLOURS[kv], values, look: 'line' };
}

function rightSquare(input: MemoryInput, result: MemoryResult | null): { one: string; two: string } {
  const bytes = (result?.bytesPerToken ?? 0) * input.contextLength;
  return { one: formatBytes(bytes), two: formatBytes(2 * bytes) };
}

function Results({ input, result }: { input: MemoryInput; result: MemoryResult }): JSX.Element {
  const { usersThatFit, totalBytes } = result;
  const isTooMuch = totalBytes > input.gpuBytes;
  const share = (bytes: number): string => `${Math.min(100, (100 * bytes) / Math.max(totalBytes, input.gpuBytes))}%`;
  return (
    <Panel title={t('results')}>
      <Readouts>
        <Readout label={t('perToken')} value={formatBytes(result.bytesPerToken)} note={formulaOf(input)} />
        <Readout
          label={t('perUser')}
          value={formatBytes(result.userBytes)}
          note={t('tokens', { count: input.contextLength })}
        />
        <Readout
          label={t('allUsers', { count: input.users })}
          value={formatBytes(result.kvBytes)}
          {...(result.sparedBytes > 0 ? { note: t('spared', { bytes: formatBytes(result.sparedBytes) }) } : {})}
        />
        <Readout label={t('weights')} value={formatBytes(result.weightsBytes)} note={input.weights} />
        <Readout
          label={t('fits')}
          value={formatCount(usersThatFit)}
          note={t('fitsNote', { bytes: formatBytes(input.gpuBytes) })}
          tone={usersThatFit >= input.users ? 'good' : 'bad'}
        />
      </Readouts>
      <div class="memory-bar" aria-hidden="true">
        <span class="weights" style={{ width: share(result.weightsBytes) }} />
        <span class="shared" style={{ width: share(result.sharedBytes) }} />
        <span
          class={isTooMuch ? 'users over' : 'users'}
          style={{ width: share(result.kvBytes - result.sharedBytes) }}
        />
      </div>
      <ul class="key">
        <li class="weights">{t('weights')}</li>
        {result.sharedBytes > 0 && <li class="shared">{t('sharedKv')}</li>}
        <li class={isTooMuch ? 'users over' : 'users'}>{t('usersKv')}</li>
        {isTooMuch && <li class="plain">{t('tooMuch', { bytes: formatBytes(totalBytes - input.gpuBytes) })}</li>}
      </ul>
    </Panel>
  );
}

/** 2 x layers x heads x values x bytes: what a token is made of. */
function formulaOf({ preset, kv }: MemoryInput): string {
  const { numLayers, kvHeads, headDim, sliding } = preset;
  const formula = t('formula', { numLayers, kvHeads, headDim, kv });
  return sliding ? `${formula}; ${t('slidingNote', { layers: sliding.numLayers, window: sliding.window })}` : formula;
}

function Claim({ wrong, right }: { wrong: string; right: string }): JSX.Element {
  return (
    <div class="claim">
      <p class="claim-wrong">
        <span class="visually-hidden">{t('claimWrong')}</span> {wrong}
      </p>
      <p>{right}</p>
    </div>
  );
}
