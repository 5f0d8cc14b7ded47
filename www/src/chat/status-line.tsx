/** One line about the loaded model: quantisation, context used, KV format, GPU. */
import type { AdapterInfo } from 'pagewise';
import type { JSX } from 'preact';
import { formatBytes, formatCount } from '../i18n/format';
import { useSession } from '../ui/context';
import { useChat } from './context';

export function StatusLine(): JSX.Element {
  const app = useChat();
  const session = useSession();
  const state = session.loader.state.value;
  if (state.kind !== 'ready') return <div class="status">Nothing you write leaves this page</div>;
  const { info } = state.model;
  const used = app.contextTokens.value;
  return (
    <section class="status" aria-label="Model status">
      <span>{info.quantisation}</span>
      <span class="context" title="Tokens of this conversation in the context, and the most it can have">
        <progress aria-label="Context used" max={info.contextLength} value={Math.min(used, info.contextLength)} />
        {formatCount(used)} / {formatCount(info.contextLength)}
      </span>
      <span title="Number format of the KV cache">KV {info.kv}</span>
      <span title="GPU memory taken">{formatBytes(info.gpuBytes)}</span>
      <span class="adapter" title={adapterName(info.adapter)}>
        {adapterName(info.adapter)}
      </span>
    </section>
  );
}

/** The GPU's name, from whatever the browser tells of it. */
export function adapterName(adapter: AdapterInfo): string {
  const parts = [adapter.vendor, adapter.architecture].filter((part) => part !== '');
  const name = adapter.description || parts.join(' ') || 'GPU';
  return adapter.isSoftware ? `${name} (on the CPU)` : name;
}
