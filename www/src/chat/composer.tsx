/** Where the visitor writes. Enter sends, Shift+Enter starts a line, Escape stops. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useSession } from '../ui/context';
import { Icon } from '../ui/kit';
import { useChat } from './context';

export function Composer(): JSX.Element {
  const app = useChat();
  const session = useSession();
  const input = useRef<HTMLTextAreaElement>(null);
  const draft = app.draft.value;
  const isBusy = app.busy.value;
  const focusRequests = app.focus.value;
  const gpu = session.gpu.value.kind;
  const canRun = gpu === 'ok' || gpu === 'checking';

  useLayoutEffect(() => {
    if (input.current) fitHeight(input.current);
  }, [draft]);

  // On a touch screen focus opens the keyboard over half the page, so only where there is a mouse.
  useEffect(() => {
    if (matchMedia('(pointer: fine)').matches) input.current?.focus();
  }, [focusRequests]);

  const send = (): void => app.send(draft);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!isBusy) send();
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={input}
        aria-label="Message"
        placeholder={canRun ? 'Ask anything' : 'This browser cannot run a model yet'}
        rows={1}
        value={draft}
        disabled={!canRun}
        autocomplete="off"
        enterkeyhint="send"
        onInput={(event) => {
          app.draft.value = event.currentTarget.value;
        }}
        onKeyDown={onKeyDown}
      />
      {isBusy ? (
        <button type="button" class="send" aria-label="Stop" title="Stop (Escape)" onClick={() => app.stop()}>
          <Icon name="stop" />
        </button>
      ) : (
        <button
          type="submit"
          class="send"
          aria-label="Send"
          title="Send (Enter)"
          disabled={!canRun || draft.trim() === ''}
        >
          <Icon name="send" />
        </button>
      )}
    </form>
  );
}

/** Grows the box with its text where the browser cannot do so itself (`field-sizing`). */
function fitHeight(element: HTMLTextAreaElement): void {
  if (typeof CSS !== 'undefined' && CSS.supports('field-sizing', 'content')) return;
  element.style.height = 'auto';
  element.style.height = `${element.scrollHeight}px`;
}
