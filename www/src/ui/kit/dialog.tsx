/** A modal dialog on the browser's own element: focus stays inside, Escape closes, focus returns. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { t } from '../../i18n/core';
import { IconButton } from './controls';

export interface DialogProps {
  readonly title: string;
  /** A `sheet` is a panel at the end side, a `drawer` at the start side; a `box` is centred. */
  readonly shape: 'sheet' | 'drawer' | 'box';
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Shown for as long as it is rendered. */
export function Dialog({ title, shape, onClose, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();

  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);

  const closeOnBackdrop = (event: MouseEvent): void => {
    // The element fills itself with its body, so only the backdrop is clicked as the dialog itself.
    if (event.target === element.current) onClose();
  };

  return (
    <dialog ref={element} class={shape} aria-labelledby={titleId} onClose={onClose} onClick={closeOnBackdrop}>
      <div class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <IconButton icon="close" label={t('close')} onClick={onClose} />
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
