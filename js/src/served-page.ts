/**
 * A page, as the worker that serves it sees it.
 */

import type { FromWorker } from './protocol.js';

/** Sends a message to a page. */
export type SendToPage = (message: FromWorker, transfer: Transferable[]) => void;

/** See the file's comment. */
export class ServedPage {
  readonly #send: SendToPage;
  /** Whether the worker is this page's own and ends with it. */
  readonly isOwner: boolean;
  /** Whether it has said who it is, and of which version. */
  greeting: 'none' | 'ours' | 'other' = 'none';
  /** The engine's ids of its requests, by its own. */
  readonly requests = new Map<number, number>();
  listensToCache = false;
  listensToSteps = false;
  /** Undefined: it does not care. */
  stepTarget: number | null | undefined;
  /** Messages that were none of the protocol's. */
  numIgnored = 0;
  readonly #cleanups: (() => void)[] = [];
  #hasLeft = false;

  /** Knows nothing of it yet. */
  constructor(send: SendToPage, isOwner: boolean) {
    this.#send = send;
    this.isOwner = isOwner;
  }

  /** Whether it is gone. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Sends a message, unless it is gone. */
  post(message: FromWorker, transfer: Transferable[] = []): void {
    if (!this.#hasLeft) this.#send(message, transfer);
  }

  /** Has something done when it is gone. */
  atEnd(cleanup: () => void): void {
    this.#cleanups.push(cleanup);
  }

  /** From now on it is gone. */
  leave(): void {
    this.#hasLeft = true;
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
  }
}

/** What the GPU should take at a stretch, in milliseconds: what the most impatient of the pages wants; undefined for no limit. */
export function stepTargetOf(pages: Iterable<ServedPage>): number | undefined {
  const targets = [...pages].flatMap(({ stepTarget }) => (typeof stepTarget === 'number' ? [stepTarget] : []));
  return targets.length === 0 ? undefined : Math.min(...targets);
}
