/** The bar at the top of a view: menu (on phones), title, the model, and what the view offers. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { t } from '../i18n/core';
import { modelName } from '../state/loader';
import { useSession } from '../ui/context';
import { Icon, IconButton } from '../ui/kit';
import { Drawer } from './nav';

export interface ViewBarProps {
  /** The view's heading; `hideTitle` leaves it to screen readers. */
  readonly title: string;
  readonly hideTitle?: boolean;
  /** Buttons at the end. */
  readonly children?: ComponentChildren;
  /** What the drawer has besides the navigation; is told how to close it. */
  readonly drawer?: (close: () => void) => ComponentChildren;
}

export function ViewBar({ title, hideTitle = false, children, drawer }: ViewBarProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  return (
    <header class="bar">
      <IconButton icon="menu" label={t('menu')} class="only-narrow" opens="dialog" onClick={() => setOpen(true)} />
      <h1 class={hideTitle ? 'visually-hidden' : 'bar-title'} tabIndex={-1}>
        {title}
      </h1>
      <ModelButton />
      <div class="spacer" />
      {children}
      {isOpen && <Drawer onClose={close}>{drawer?.(close)}</Drawer>}
    </header>
  );
}

function ModelButton(): JSX.Element {
  const session = useSession();
  const name = modelName(session.loader.state.value);
  return (
    <button
      type="button"
      class="button quiet model-button"
      aria-haspopup="dialog"
      aria-label={name ? t('modelLabel', { name }) : t('chooseModel')}
      onClick={() => {
        session.dialog.value = 'models';
      }}
    >
      <span class="name">{name || t('chooseModel')}</span>
      <Icon name="chevron" />
    </button>
  );
}
