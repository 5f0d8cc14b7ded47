/** Edits a message where it stands. Escape leaves it as it was. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t as core } from '../i18n/core';
import { Button } from '../ui/kit';

export interface EditBoxProps {
  readonly label: string;
  readonly text: string;
  readonly action: string;
  readonly onSave: (text: string) => void;
  readonly onClose: () => void;
}

export function EditBox({ label, text, action, onSave, onClose }: EditBoxProps): JSX.Element {
  const [edited, setEdited] = useState(text);
  const input = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const element = input.current;
    element?.focus();
    element?.setSelectionRange(element.value.length, element.value.length);
  }, []);
  const save = (): void => {
    onClose();
    onSave(edited);
  };
  return (
    <form
      class="edit-box"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <textarea
        ref={input}
        class="input"
        aria-label={label}
        rows={Math.min(12, edited.split('\n').length + 1)}
        value={edited}
        onInput={(event) => setEdited(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            onClose();
          } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) save();
        }}
      />
      <div class="actions">
        <Button kind="primary" type="submit" disabled={edited.trim() === '' || edited === text}>
          {action}
        </Button>
        <Button onClick={onClose}>{core('cancel')}</Button>
      </div>
    </form>
  );
}
