/** The whole page. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { App } from '../state/app';
import { Announcer } from './announcer';
import { Bar } from './bar';
import { Composer } from './composer';
import { AppContext, useApp } from './context';
import { Conversation } from './conversation';
import { DropZone } from './drop-zone';
import { Icon } from './icons';
import { ModelDialog } from './model-dialog';
import { SettingsDialog } from './settings-dialog';
import { StatusLine } from './status-line';

export function Page({ app }: { app: App }): JSX.Element {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      // An open dialog takes Escape for itself.
      if (event.key === 'Escape' && app.dialog.peek() === null && app.busy.peek()) app.stop();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [app]);

  return (
    <AppContext.Provider value={app}>
      <div class="app">
        <Bar />
        <main class="main">
          <Conversation />
        </main>
        <footer class="dock">
          <Notices />
          <Composer />
          <StatusLine />
        </footer>
      </div>
      {app.dialog.value === 'settings' && <SettingsDialog />}
      {app.dialog.value === 'models' && <ModelDialog />}
      <Announcer />
      <DropZone />
    </AppContext.Provider>
  );
}

function Notices(): JSX.Element {
  const app = useApp();
  return (
    <>
      {app.notices.value.map((text) => (
        <div key={text} class="notice" role="status">
          <p>{text}</p>
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => app.dismiss(text)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </>
  );
}
