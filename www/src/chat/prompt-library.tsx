/** Saved prompts: each with its versions, any of which can be put back into the field. */
import type { JSX } from 'preact';
import { formatDateTime, isoTime } from '../i18n/format';
import { IconButton } from '../ui/kit';
import { useChat } from './context';
import { versionName } from './prompt-state';
import type { PromptRecord, SystemPrompt } from './records';
import { t } from './text';

/** How long a deleted prompt can be brought back. */
const UNDO_MS = 10_000;

export function PromptLibrary({ onTake }: { onTake: (prompt: SystemPrompt) => void }): JSX.Element {
  const chat = useChat();
  const prompts = chat.library.prompts.value;
  if (prompts.length === 0) return <p class="help">{t('promptsNone')}</p>;
  const remove = async ({ name }: PromptRecord): Promise<void> => {
    const undo = await chat.library.deletePrompt(name);
    if (!undo) return;
    const action = { label: () => t('undo'), run: () => void undo() };
    chat.session.notices.show({ id: `prompt ${name}`, text: () => t('promptDeleted', { name }), action }, UNDO_MS);
  };
  return (
    <ul class="prompt-list">
      {prompts.map((prompt) => (
        <li key={prompt.name}>
          <PromptItem prompt={prompt} onTake={onTake} onDelete={() => void remove(prompt)} />
        </li>
      ))}
    </ul>
  );
}

interface ItemProps {
  readonly prompt: PromptRecord;
  readonly onTake: (prompt: SystemPrompt) => void;
  readonly onDelete: () => void;
}

function PromptItem({ prompt: { name, versions }, onTake, onDelete }: ItemProps): JSX.Element {
  return (
    <details>
      <summary>
        <strong>{name}</strong>
        <span class="facts">{versionName(name, versions.at(-1)?.version ?? 1)}</span>
      </summary>
      <ul class="versions" aria-label={t('versionsOf', { name })}>
        {[...versions].reverse().map(({ version, text, created }) => (
          <li key={version}>
            <button
              type="button"
              class="version"
              aria-label={t('takeVersion', { name: versionName(name, version) })}
              onClick={() => onTake({ text, name, version })}
            >
              <span class="version-name">{versionName(name, version)}</span>
              <time dateTime={isoTime(created)}>{formatDateTime(created)}</time>
              <span class="version-text">{text}</span>
            </button>
          </li>
        ))}
      </ul>
      <IconButton icon="trash" label={t('deletePrompt', { name })} onClick={onDelete} />
    </details>
  );
}
