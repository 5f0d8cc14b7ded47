/** What the page tells its service worker. */
export type ToOfflineWorker =
  /** The engine is in use: keep its files. Answered over a port once they are kept, or not. */
  | { readonly type: 'pagewise-keep-engine' }
  /** The visitor wants the new version now. */
  | { readonly type: 'pagewise-update' };
