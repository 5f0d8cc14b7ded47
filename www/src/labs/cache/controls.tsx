/** The cache's switches: those that work at once, and those that load the model again. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { LoadSettings } from '../../state/loader';
import { Button, Choices, Panel, Slider, Switch } from '../../ui/kit';
import { BLOCK_SIZE } from '../shared/token-runs';
import type { CacheLab } from './lab';
import { poolBlocks } from './run';
import { t } from './text';

/** Times to live on offer, in seconds; 0 for as long as there is room. */
const TTLS = [0, 2, 10, 60, 300] as const;

interface ControlsProps {
  readonly lab: CacheLab;
  /** Loads the model again with these settings. */
  readonly onReload: (change: Partial<LoadSettings>) => void;
}

export function Controls({ lab, onReload }: ControlsProps): JSX.Element {
  const { enabled, policy, ttlSeconds, pin } = lab.settings.value;
  const ttl = Math.max(0, TTLS.indexOf((ttlSeconds ?? 0) as (typeof TTLS)[number]));
  const seconds = TTLS[ttl] ?? 0;
  return (
    <Panel title={t('settings')}>
      <div class="controls">
        <Switch
          label={t('useCache')}
          help={t('useCacheHelp')}
          checked={enabled}
          onChange={(isOn) => void lab.set({ enabled: isOn })}
        />
        <Switch label={t('pin')} help={t('pinHelp')} checked={pin} onChange={(isOn) => void lab.set({ pin: isOn })} />
        <Choices
          label={t('policy')}
          options={[
            { value: 'lru', label: t('lru') },
            { value: 'tail_aware', label: t('tailAware') },
          ]}
          value={policy}
          onChange={(value) => void lab.set({ policy: value })}
        />
        <Slider
          label={t('ttl')}
          min={0}
          max={TTLS.length - 1}
          value={ttl}
          shown={seconds === 0 ? t('ttlNever') : t('ttlSeconds', { count: seconds })}
          onChange={(index) => void lab.set({ ttlSeconds: TTLS[index] || null })}
        />
      </div>
      <PoolControls lab={lab} onReload={onReload} />
    </Panel>
  );
}

/** The pool's least blocks: a request of an experiment has to fit. */
const MIN_BLOCKS = 16;
const STEP_BLOCKS = 8;
const MAX_TOKENS = 8192;

function PoolControls({ lab, onReload }: ControlsProps): JSX.Element {
  const { info } = lab.engine;
  const now = poolBlocks(info);
  const blocks = useSignal(now);
  const kv = useSignal(info.kv);
  const max = Math.max(now, Math.min(MAX_TOKENS, info.trainedContextLength) / BLOCK_SIZE);
  const hasChanged = blocks.value !== now || kv.value !== info.kv;
  return (
    <div class="controls reload">
      <Slider
        label={t('poolSize')}
        help={t('poolSizeHelp')}
        min={Math.min(MIN_BLOCKS, now)}
        max={max}
        step={STEP_BLOCKS}
        value={blocks.value}
        shown={t('blocksAndTokens', { count: blocks.value, tokens: blocks.value * BLOCK_SIZE })}
        onChange={(value) => {
          blocks.value = value;
        }}
      />
      <Choices
        label={t('kvFormat')}
        options={[
          { value: 'f16', label: 'f16' },
          { value: 'f32', label: 'f32' },
        ]}
        value={kv.value}
        onChange={(value) => {
          kv.value = value;
        }}
      />
      <Button
        icon="retry"
        disabled={!hasChanged || lab.job.busy.value}
        // A sequence is never longer than the pool, so the context is as long as it.
        onClick={() => onReload({ contextLength: blocks.value * BLOCK_SIZE, kvFormat: kv.value })}
      >
        {t('reload')}
      </Button>
    </div>
  );
}
