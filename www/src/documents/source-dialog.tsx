/** A passage in full, with where it is from. */
import type { JSX } from 'preact';
import { useChat } from '../chat/context';
import { Dialog } from '../ui/kit';
import type { SourceRecord } from './source';
import { placeText } from './source-text';
import { t } from './text';
import './documents.css';

/** The chat's dialog for the source that was asked for. */
export default function SourceDialog(): JSX.Element | null {
  const chat = useChat();
  const source = chat.source.value;
  const close = (): void => {
    chat.dialog.value = null;
  };
  return source && <SourceView source={source} onClose={close} />;
}

export function SourceView({ source, onClose }: { source: SourceRecord; onClose: () => void }): JSX.Element {
  return (
    <Dialog
      title={t('sourceTitle', { number: String(source.number), title: source.title })}
      shape="box"
      onClose={onClose}
    >
      <p class="passage-place">{placeText(source)}</p>
      <blockquote class="passage-text" data-passage={source.passage}>
        {source.text}
      </blockquote>
      <p class="help">{t('sourceKept')}</p>
    </Dialog>
  );
}
