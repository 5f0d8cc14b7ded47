/** The chat's dialogs, each loaded when it is first opened. */
import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ChatDialog } from './chat';
import { useChat } from './context';

const LOADERS: Readonly<Record<ChatDialog, () => Promise<{ default: ComponentType }>>> = {
  prompt: () => import('./prompt-dialog'),
  budget: () => import('./budget-dialog'),
  tree: () => import('./tree-dialog'),
  import: () => import('./import-dialog'),
  documents: () => import('../documents/documents-dialog'),
  source: () => import('../documents/source-dialog'),
};

export function ChatDialogs(): JSX.Element | null {
  const name = useChat().dialog.value;
  return name ? <LazyDialog key={name} name={name} /> : null;
}

function LazyDialog({ name }: { name: ChatDialog }): JSX.Element | null {
  const chat = useChat();
  const [View, setView] = useState<ComponentType | null>(null);
  useEffect(() => {
    LOADERS[name]().then(
      (module) => setView(() => module.default),
      () => {
        chat.dialog.value = null;
      },
    );
  }, []);
  return View ? <View /> : null;
}
