/** Where the visitor writes. Enter sends, Shift+Enter starts a line, Escape stops. Files are attached, dropped or pasted. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { DocumentsButton } from '../documents/documents-button';
import { formatBytes } from '../i18n/format';
import { useSession } from '../ui/context';
import { Icon, IconButton } from '../ui/kit';
import { attachFiles } from './attach';
import { useChat } from './context';
import { t } from './text';

export function Composer(): JSX.Element {
  const session = useSession();
  const chat = useChat();
  const input = useRef<HTMLTextAreaElement>(null);
  const draft = chat.draft.value;
  const files = chat.files.value;
  const isBusy = chat.busy.value;
  const focusRequests = chat.composerFocus.value;
  const gpu = session.gpu.value.kind;
  const canRun = gpu === 'ok' || gpu === 'checking';

  useLayoutEffect(() => {
    if (input.current) fitHeight(input.current);
  }, [draft]);

  // On a touch screen focus opens the keyboard over half the page, so only where there is a mouse; and not at the start.
  useEffect(() => {
    if (focusRequests > 0 && matchMedia('(pointer: fine)').matches) input.current?.focus();
  }, [focusRequests]);

  const send = (): void => chat.send(draft);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!isBusy) send();
  };

  const onPaste = (event: ClipboardEvent): void => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length === 0) return;
    event.preventDefault();
    void attachFiles(chat, pasted);
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {files.length > 0 && <FileChips />}
      <div class="composer-row">
        <AttachButton disabled={!canRun} />
        <DocumentsButton disabled={!canRun} />
        <textarea
          ref={input}
          aria-label={t('message')}
          placeholder={canRun ? t('placeholder') : t('placeholderNoGpu')}
          rows={1}
          value={draft}
          disabled={!canRun}
          autocomplete="off"
          enterkeyhint="send"
          onInput={(event) => {
            chat.draft.value = event.currentTarget.value;
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        {isBusy ? (
          <button type="button" class="send" aria-label={t('stop')} title={t('stopTitle')} onClick={() => chat.stop()}>
            <Icon name="stop" />
          </button>
        ) : (
          <button
            type="submit"
            class="send"
            aria-label={t('send')}
            title={t('sendTitle')}
            disabled={!canRun || (draft.trim() === '' && files.length === 0)}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function AttachButton({ disabled }: { disabled: boolean }): JSX.Element {
  const chat = useChat();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon="attach" label={t('attach')} disabled={disabled} onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={t('attach')}
        onChange={(event) => {
          void attachFiles(chat, [...(event.currentTarget.files ?? [])]);
          // The same file may be chosen again after it was removed.
          event.currentTarget.value = '';
        }}
      />
    </>
  );
}

function FileChips(): JSX.Element {
  const chat = useChat();
  return (
    <ul class="chips" aria-label={t('attached')}>
      {chat.files.value.map((file) => (
        <li key={file.name} class="chip">
          <Icon name="file" />
          <span class="chip-name">{file.name}</span>
          <span class="chip-size">{formatBytes(file.bytes)}</span>
          <IconButton
            icon="close"
            label={t('removeFile', { name: file.name })}
            onClick={() => {
              chat.files.value = chat.files.peek().filter((other) => other !== file);
              chat.composerFocus.value += 1;
            }}
          />
        </li>
      ))}
    </ul>
  );
}

/** Grows the box with its text where the browser cannot do so itself (`field-sizing`). */
function fitHeight(element: HTMLTextAreaElement): void {
  if (typeof CSS !== 'undefined' && CSS.supports('field-sizing', 'content')) return;
  element.style.height = 'auto';
  element.style.height = `${element.scrollHeight}px`;
}
