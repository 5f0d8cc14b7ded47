/** One line about the loaded model and how full its context is. */
import type { AdapterInfo } from 'pagewise';
import type { JSX } from 'preact';
import { formatBytes, formatCount } from '../i18n/format';
import { useSession } from '../ui/context';
import { useChat } from './context';
import { GaugeBar } from './gauge-bar';
import { t } from './text';

export function StatusLine(): JSX.Element {
  const session = useSession();
  const chat = useChat();
  const state = session.loader.state.value;
  if (state.kind !== 'ready') return <div class="status">{t('nothingLeaves')}</div>;
  const { info } = state.model;
  const reading = chat.gauge.reading.value;
  const used = reading?.promptTokens ?? 0;
  const cached = reading?.cachedTokens ?? 0;
  const total = info.contextLength;
  return (
    <section class="status" aria-label={t('modelStatus')}>
      <button
        type="button"
        class="gauge"
        aria-haspopup="dialog"
        aria-label={t('contextOpen', { used, total, cached })}
        onClick={() => {
          chat.dialog.value = 'budget';
        }}
      >
        <GaugeBar used={used} cached={cached} kept={0} total={total} />
        <span aria-hidden="true">{`${formatCount(used)} / ${formatCount(total)}`}</span>
      </button>
      <span>{info.quantisation}</span>
      <span title={t('kvHelp')}>{t('kv', { format: info.kv })}</span>
      <span title={t('gpuMemory')}>{formatBytes(info.gpuBytes)}</span>
      <span class="adapter" title={adapterName(info.adapter)}>
        {adapterName(info.adapter)}
      </span>
    </section>
  );
}

/** The GPU's name, from whatever the browser tells of it. */
export function adapterName(adapter: AdapterInfo): string {
  const parts = [adapter.vendor, adapter.architecture].filter((part) => part !== '');
  const name = adapter.description || parts.join(' ') || t('gpu');
  return adapter.isSoftware ? t('onCpu', { name }) : name;
}
