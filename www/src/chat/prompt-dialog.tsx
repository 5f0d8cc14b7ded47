/** The system prompt of the open conversation, and the library of prompts with their versions. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Button, Dialog } from '../ui/kit';
import { useChat } from './context';
import { PromptLibrary } from './prompt-library';
import { isPromptName, lostTokens, versionName } from './prompt-state';
import type { SystemPrompt } from './records';
import { t } from './text';

const COUNT_AFTER_MS = 250;

export default function PromptDialog(): JSX.Element {
  const chat = useChat();
  const current = chat.thread.value.record.value.system;
  const [edited, setEdited] = useState<SystemPrompt>(current);
  const [name, setName] = useState(current.name ?? '');
  const isUsed = edited.text === current.text;
  const loss = useLoss(edited);

  const newest = chat.library.prompts.value.find((prompt) => prompt.name === name)?.versions.at(-1);
  const nextName = versionName(name, (newest?.version ?? 0) + 1);
  const isBadName = name !== '' && !isPromptName(name);
  const isSame = newest !== undefined && newest.text === edited.text;
  const canSave = isPromptName(name) && edited.text.trim() !== '' && !isSame;
  // What the button waits for; without a name the help says what one is made of.
  const whyNot = isBadName
    ? t('nameWrong')
    : name === ''
      ? null
      : edited.text.trim() === ''
        ? t('saveNothing')
        : isSame
          ? t('saveSame', { name: versionName(name, newest.version) })
          : null;

  const save = async (): Promise<void> => {
    const version = await chat.library.addPromptVersion(name, edited.text);
    if (version === null) return;
    const saved = { text: edited.text, name, version };
    setEdited(saved);
    // The same text under its name: the cache does not notice.
    if (isUsed) chat.setSystem(saved);
  };

  return (
    <Dialog
      title={t('systemPrompt')}
      shape="sheet"
      onClose={() => {
        chat.dialog.value = null;
      }}
    >
      <section class="group">
        <label class="field">
          <span class="field-head">
            {edited.name === null ? t('systemPrompt') : versionName(edited.name, edited.version ?? 1)}
          </span>
          <textarea
            class="input"
            rows={8}
            placeholder={t('systemPlaceholder')}
            value={edited.text}
            onInput={(event) => setEdited({ text: event.currentTarget.value, name: null, version: null })}
          />
        </label>
        <p class="help">{t('systemHelp')}</p>
        <div role="status">{loss && <p class="warning">{loss}</p>}</div>
        <div class="actions">
          <Button kind="primary" disabled={isUsed || chat.busy.value} onClick={() => chat.setSystem(edited)}>
            {isUsed && edited.text !== '' ? t('inUse') : t('usePrompt')}
          </Button>
        </div>
        <form
          class="save-prompt"
          onSubmit={(event) => {
            event.preventDefault();
            if (canSave) void save();
          }}
        >
          <label class="field" for="prompt-name">
            <span class="field-head">{t('promptName')}</span>
          </label>
          <div class="row">
            <input
              id="prompt-name"
              class="input"
              type="text"
              autocomplete="off"
              spellcheck={false}
              value={name}
              aria-describedby="prompt-name-help"
              aria-invalid={isBadName}
              onInput={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" disabled={!canSave}>
              {t('saveVersion', { name: isPromptName(name) ? nextName : '…' })}
            </Button>
          </div>
          <p class={isBadName ? 'help wrong' : 'help'} id="prompt-name-help" aria-live="polite">
            {whyNot ?? t('saveHelp')}
          </p>
        </form>
      </section>
      <section class="group">
        <h3>{t('promptLibrary')}</h3>
        <PromptLibrary
          onTake={(taken) => {
            setEdited(taken);
            setName(taken.name ?? '');
          }}
        />
      </section>
    </Dialog>
  );
}

/** The warning for a changed prompt, a moment after it changed; empty while nothing is lost. */
function useLoss(edited: SystemPrompt): string {
  const chat = useChat();
  const [lost, setLost] = useState<number | null>(0);
  const inUse = chat.thread.value.record.value.system.text;
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(() => {
      void lostTokens(chat, edited).then((tokens) => {
        if (isCurrent) setLost(tokens);
      });
    }, COUNT_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [edited.text, inUse]);
  if (lost === null) return t('losesUnknown');
  return lost > 0 ? t('losesTokens', { count: lost }) : '';
}
