/** The page's side of working offline: registers the service worker, keeps the engine, offers new versions. */
import { effect } from '@preact/signals';
import { t } from '../i18n/core';
import type { Session } from '../state/session';
import type { ToOfflineWorker } from './messages';

/** Beside the page, so that its scope is the page's folder under any base path. */
const SCRIPT = 'service-worker.js';

/** Starts once the page is there, so that nothing of it waits for this. */
export function workOffline(session: Session): void {
  const { serviceWorker } = navigator;
  if (!serviceWorker || !import.meta.env.PROD) return;
  const start = async (): Promise<void> => {
    const registration = await serviceWorker.register(new URL(SCRIPT, document.baseURI));
    offerUpdates(session, registration);
    keepEngine(session, registration);
  };
  // Without it the page works, but not offline: private windows forbid it.
  const run = (): void => void start().catch(() => undefined);
  if (document.readyState === 'complete') run();
  else addEventListener('load', run, { once: true });
}

/** The engine's files are kept with the first model that is loaded. */
function keepEngine(session: Session, registration: ServiceWorkerRegistration): void {
  const stop = effect(() => {
    if (session.loader.state.value.kind !== 'ready') return;
    void navigator.serviceWorker.ready.then(() => tell(registration.active, { type: 'pagewise-keep-engine' }));
    queueMicrotask(() => stop());
  });
}

/** A new version waits until the visitor wants it: two versions at once would not find each other's files. */
function offerUpdates(session: Session, registration: ServiceWorkerRegistration): void {
  const offer = (): void => {
    const { waiting } = registration;
    // Without a controller this is the first version.
    if (!waiting || !navigator.serviceWorker.controller) return;
    const run = (): void => {
      navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
      tell(waiting, { type: 'pagewise-update' });
    };
    session.notices.show({ id: 'update', text: () => t('updateReady'), action: { label: () => t('updateNow'), run } });
  };
  offer();
  registration.addEventListener('updatefound', () => {
    registration.installing?.addEventListener('statechange', offer);
  });
}

function tell(worker: ServiceWorker | null, message: ToOfflineWorker): void {
  worker?.postMessage(message);
}
