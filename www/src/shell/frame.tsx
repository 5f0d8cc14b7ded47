/** The frame around every view: navigation at the side, the view, dialogs, and what is said to screen readers. */
import type { ComponentType, JSX } from 'preact';
import { useEffect, useErrorBoundary, useState } from 'preact/hooks';
import { t } from '../i18n/core';
import { nextTask } from '../idle';
import type { Session } from '../state/session';
import { SessionContext } from '../ui/context';
import { DropZone } from '../ui/drop-zone';
import { Button } from '../ui/kit';
import { Dialogs } from './dialogs';
import { Rail } from './nav';
import { type ViewName, view } from './router';
import { VIEW_INFO } from './views';

export function Frame({ session }: { session: Session }): JSX.Element {
  const name = view.value;
  const title = VIEW_INFO[name].title();
  useEffect(() => {
    document.title = name === 'chat' ? t('appName') : `${title} · ${t('appName')}`;
  }, [name, title]);

  return (
    <SessionContext.Provider value={session}>
      <button type="button" class="skip" onClick={focusView}>
        {t('skip')}
      </button>
      <div class="frame">
        <Rail />
        <div class="view">
          <LazyView key={name} name={name} />
        </div>
      </div>
      <Dialogs />
      <div class="visually-hidden" role="status" aria-live="polite">
        {session.announcement.value}
      </div>
      <DropZone />
    </SessionContext.Provider>
  );
}

/** Puts the keyboard focus at the top of the view. */
export function focusView(): void {
  document.querySelector<HTMLElement>('.view h1')?.focus();
}

/** Whether a view was shown before: the first one does not take the focus from the address bar. */
let isFirst = true;

const loaded = new Map<ViewName, ComponentType>();

function LazyView({ name }: { name: ViewName }): JSX.Element {
  const [, redraw] = useState(0);
  const [failure, setFailure] = useState<unknown>(null);
  const [error] = useErrorBoundary();
  const View = loaded.get(name);

  const load = (): void => {
    setFailure(null);
    VIEW_INFO[name].load().then(
      async (module) => {
        loaded.set(name, module.default);
        // Drawing a view takes about as long as running its module: not in one piece.
        await nextTask();
        redraw((count) => count + 1);
      },
      (reason: unknown) => setFailure(reason),
    );
  };
  useEffect(() => {
    if (!View) load();
  }, []);
  // A visitor of another view starts at its top, as after following any link.
  useEffect(() => {
    if (!View) return;
    if (!isFirst) focusView();
    isFirst = false;
  }, [View]);

  const problem = failure ?? error;
  if (problem) {
    return (
      <main class="screen" role="alert">
        <h1 tabIndex={-1}>{t('viewFailed')}</h1>
        <p class="detail" lang="en">
          {String(problem)}
        </p>
        <Button onClick={() => (failure ? load() : location.reload())}>{t('tryAgain')}</Button>
      </main>
    );
  }
  if (!View) {
    return (
      <main class="screen" aria-busy="true">
        <h1 class="visually-hidden" tabIndex={-1}>
          {VIEW_INFO[name].title()}
        </h1>
        <p class="waiting">
          <i aria-hidden="true" />
          {t('loadingView')}
        </p>
      </main>
    );
  }
  return <View />;
}
