/**
 * What the service worker and the pages say to each other. The worker keeps nothing between two requests: it asks all pages who
 * can answer, each with a port of its own, and the request goes through the port of the first that can.
 */

/** Changes when messages do: a page and a worker of different versions do not understand each other. */
export const ROUTE_VERSION = 1;

/** From a page to the worker, with a port: be my worker, and say so. */
export interface ClaimMessage {
  type: 'pagewise-claim';
}

/** The worker's answer to {@link ClaimMessage}, through the port. */
export interface ReadyMessage {
  type: 'ready';
  version: number;
  /** Absolute URL of the route, with a slash at its end. */
  url: string;
}

/** From the worker to every page, with a port: can you answer a request? Pages that cannot say nothing. */
export interface AskMessage {
  type: 'pagewise-ask';
  version: number;
  /** Absolute URL of the route. */
  url: string;
  /** The request's `model`, if it has one. */
  model: string | null;
}

/** From the worker to a page, through the port. */
export type ToPage =
  | {
      type: 'request';
      url: string;
      method: string;
      headers: [string, string][];
      body: ArrayBuffer | null;
      /** Name of a lock that the worker holds for as long as it lives; null where there are no locks. */
      life: string | null;
    }
  /** More of the body is wanted. */
  | { type: 'pull' }
  /** Nobody waits for the answer any more, or another page was chosen. */
  | { type: 'cancel' };

/** From a page to the worker, through the port. */
export type ToServiceWorker =
  /** It can answer; `hasModel` says whether with the right model. */
  | { type: 'offer'; hasModel: boolean }
  | { type: 'response'; status: number; headers: [string, string][] }
  /** A piece of the body, after each `pull`. */
  | { type: 'chunk'; bytes: Uint8Array<ArrayBuffer> }
  | { type: 'end' }
  /** There is no response, or it breaks off. */
  | { type: 'broken'; message: string };
