/**
 * The page's service worker: everything works without a network after the first visit.
 *
 * The page's own files are kept when it is installed, the engine's when a model is first loaded, and the list of models
 * whenever it is read. A scope has one service worker, so the package's route (`/v1/`, see registerRoute) is part of it.
 * Built by build/offline.ts into a classic script of its own, which fills in the two lists.
 */
import 'pagewise/service-worker';
import { setCacheNameDetails } from 'workbox-core';
import {
  cleanupOutdatedCaches,
  createHandlerBoundToURL,
  type PrecacheEntry,
  precacheAndRoute,
} from 'workbox-precaching';
import { NavigationRoute, registerRoute } from 'workbox-routing';
import { CacheFirst, NetworkFirst } from 'workbox-strategies';
import type { ToOfflineWorker } from './messages';

declare const PAGE_FILES: PrecacheEntry[];
/** Names of the engine's files, which have their contents' hash in them. */
declare const ENGINE_FILES: string[];

/** What is used of a service worker's global scope; the DOM's types know only the page's. */
interface Scope {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: 'activate' | 'message', listener: (event: WorkerEvent) => void): void;
}
interface WorkerEvent {
  readonly data?: ToOfflineWorker;
  readonly ports?: readonly MessagePort[];
  waitUntil(work: Promise<unknown>): void;
}

const scope = globalThis as unknown as Scope;
const { scope: base } = scope.registration;
// The scope is part of each cache's name: other sites may live on the same origin.
setCacheNameDetails({ prefix: 'pagewise' });
const ENGINE_CACHE = `pagewise-engine-${base}`;
const LIST_CACHE = `pagewise-list-${base}`;

cleanupOutdatedCaches();
precacheAndRoute(PAGE_FILES, { ignoreURLParametersMatching: [/.*/] });

const engineUrls = new Set(ENGINE_FILES.map((name) => new URL(name, base).href));
registerRoute(({ url }) => engineUrls.has(url.href), new CacheFirst({ cacheName: ENGINE_CACHE }));
const listUrl = new URL('models/registry.json', base).href;
registerRoute(({ url }) => url.href === listUrl, new NetworkFirst({ cacheName: LIST_CACHE }));
// Only the page itself: whatever else the site has below is asked for as ever.
const isPage = new RegExp(`^${escapeRegExp(new URL(base).pathname)}(index\\.html)?(\\?|$)`);
registerRoute(new NavigationRoute(createHandlerBoundToURL('index.html'), { allowlist: [isPage] }));

scope.addEventListener('activate', (event) => event.waitUntil(scope.clients.claim()));

scope.addEventListener('message', (event) => {
  if (event.data?.type === 'pagewise-update') event.waitUntil(scope.skipWaiting());
  if (event.data?.type !== 'pagewise-keep-engine') return;
  const [port] = event.ports ?? [];
  event.waitUntil(
    keepEngine().then(
      () => port?.postMessage('kept'),
      () => port?.postMessage('failed'),
    ),
  );
});

/** Keeps the engine's files, those of this version only. */
async function keepEngine(): Promise<void> {
  const cache = await caches.open(ENGINE_CACHE);
  const kept = new Set((await cache.keys()).map(({ url }) => url));
  await cache.addAll([...engineUrls].filter((url) => !kept.has(url)));
  for (const url of kept) if (!engineUrls.has(url)) await cache.delete(url);
  await (await caches.open(LIST_CACHE)).add(listUrl).catch(() => undefined);
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
