/** The memory lab's controls. */
import type { JSX } from 'preact';
import { formatBytes, formatCount } from '../../i18n/format';
import { Choices, Slider, Switch } from '../../ui/kit';
import { KV_FORMATS, type MemoryInput, WEIGHT_BITS, type WeightFormat } from './calculate';
import { PRESETS, presetOf } from './presets';
import { t } from './text';

/** Sizes of GPU memory on offer, in GB. */
const GPU_GB = [4, 8, 16, 24, 48, 80, 141, 640] as const;
interface ControlsProps {
  readonly input: MemoryInput;
  readonly onChange: (part: Partial<MemoryInput>) => void;
}

export function Controls({ input, onChange }: ControlsProps): JSX.Element {
  const { preset, contextLength, users, kv, weights, gpuBytes, sharedTokens } = input;
  const gpu = Math.max(
    0,
    GPU_GB.findIndex((gb) => gb * 1e9 >= gpuBytes),
  );
  const maxShared = Math.floor((contextLength * 0.9) / 128) * 128;
  return (
    <div class="controls">
      <label class="field">
        <span class="field-head">{t('model')}</span>
        <select
          class="input"
          value={preset.id}
          onChange={(event) => onChange({ preset: presetOf(event.currentTarget.value) })}
        >
          {PRESETS.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Slider
        label={t('context')}
        value={Math.log2(contextLength)}
        min={9}
        max={Math.log2(preset.contextLength)}
        step={0.5}
        shown={t('tokens', { count: contextLength })}
        onChange={(power) => onChange({ contextLength: Math.round(2 ** power) })}
      />
      <Slider
        label={t('users')}
        value={Math.log2(users)}
        min={0}
        max={10}
        step={0.5}
        shown={formatCount(users)}
        onChange={(power) => onChange({ users: Math.round(2 ** power) })}
      />
      <Slider
        label={t('gpuMemory')}
        value={gpu}
        min={0}
        max={GPU_GB.length - 1}
        shown={formatBytes((GPU_GB[gpu] ?? 0) * 1e9)}
        onChange={(index) => onChange({ gpuBytes: (GPU_GB[index] ?? 80) * 1e9 })}
      />
      <Choices
        label={t('kvFormat')}
        options={KV_FORMATS.map((value) => ({ value, label: value }))}
        value={kv}
        onChange={(value) => onChange({ kv: value })}
      />
      <Choices
        label={t('weightFormat')}
        options={Object.keys(WEIGHT_BITS).map((value) => ({ value: value as WeightFormat, label: value }))}
        value={weights}
        onChange={(value) => onChange({ weights: value })}
      />
      <Switch
        label={t('sharing')}
        help={t('sharingHelp')}
        checked={sharedTokens > 0}
        onChange={(isOn) => onChange({ sharedTokens: isOn ? Math.floor(contextLength / 2) : 0 })}
      />
      {sharedTokens > 0 && (
        <Slider
          label={t('sharedTokens')}
          value={Math.min(sharedTokens, maxShared)}
          min={128}
          max={Math.max(128, maxShared)}
          step={128}
          shown={t('tokens', { count: sharedTokens })}
          onChange={(tokens) => onChange({ sharedTokens: tokens })}
        />
      )}
    </div>
  );
}
