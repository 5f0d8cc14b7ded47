/** The cache's switches: those that work at once, and those that load the model again. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useSession } from '../../ui/context';
import { Button, Choices, Panel, Slider, Switch } from '../../ui/kit';
import type { CacheLab } from './lab';
import { t } from './text';

/** Times to live on offer, in seconds; 0 for as long as there is room. */
const TTLS = [0, 2, 10, 60, 300] as const;

export function Controls({ lab }: { lab: CacheLab }): JSX.Element {
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
      <PoolControls lab={lab} />
    </Panel>
  );
}

function PoolControls({ lab }: { lab: CacheLab }): JSX.Element {
  const session = useSession();
  const { info } = lab.engine;
  const tokens = useSignal(info.contextLength);
  const kv = useSignal(info.kv);
  const max = Math.max(info.contextLength, Math.min(8192, info.trainedContextLength));
  const hasChanged = tokens.value !== info.contextLength || kv.value !== info.kv;
  return (
    <div class="controls reload">
      <Slider
        label={t('poolTokens')}
        min={256}
        max={max}
        step={128}
        value={tokens.value}
        shown={t('tokens', { count: tokens.value })}
        onChange={(value) => {
          tokens.value = value;
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
        onClick={() => void session.loadFor({ contextLength: tokens.value, kvFormat: kv.value })}
      >
        {t('reload')}
      </Button>
    </div>
  );
}
