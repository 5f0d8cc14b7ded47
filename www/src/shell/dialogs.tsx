/** The dialogs that any view may open; each comes when it is first opened. */
import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { DialogName } from '../state/session';
import { useSession } from '../ui/context';

const LOADERS: Readonly<Record<DialogName, () => Promise<{ default: ComponentType }>>> = {
  settings: () => import('../ui/settings-dialog'),
  models: () => import('../ui/model-dialog'),
  privacy: () => import('../ui/privacy-dialog'),
};

export function Dialogs(): JSX.Element | null {
  const name = useSession().dialog.value;
  return name ? <LazyDialog key={name} name={name} /> : null;
}

function LazyDialog({ name }: { name: DialogName }): JSX.Element | null {
  const session = useSession();
  const [View, setView] = useState<ComponentType | null>(null);
  useEffect(() => {
    LOADERS[name]().then(
      (module) => setView(() => module.default),
      () => session.closeDialog(),
    );
  }, []);
  return View ? <View /> : null;
}
