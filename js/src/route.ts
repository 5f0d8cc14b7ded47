/**
 * `registerRoute`: OpenAI's API under a path of the site, served by this page's engine through a service worker.
 */

import type { Engine } from './engine.js';
import { PagewiseError } from './errors.js';
import { bad, show } from './fields.js';
import { answerRequest } from './handler.js';
import { checkOptions } from './options.js';
import { type AskMessage, type ClaimMessage, type ReadyMessage, ROUTE_VERSION } from './route-protocol.js';
import { answerOverPort } from './route-server.js';

/** Options of {@link registerRoute}. */
export interface RouteOptions {
  /**
   * Where the site serves a copy of `pagewise/service-worker`, from the page. Its folder has to be the scope or above it,
   * unless the server sends `Service-Worker-Allowed`. Default `pagewise-service-worker.js`.
   */
  scriptURL?: string | URL;
  /** Whose requests are answered: pages below this path, from the page. Default: the script's folder. */
  scope?: string | URL;
  /** The route, from the scope. Default `v1/`. */
  path?: string;
  /**
   * A service worker of the site's own that imports ours (`importScripts('pagewise-service-worker.js')`), instead of
   * `scriptURL`, `scope` and `path`.
   */
  registration?: ServiceWorkerRegistration;
  /** Longest body of a request that is read, in bytes. Default 4 MiB; over 64 MiB, the service worker passes nothing on. */
  maxBodyBytes?: number;
}

/** A route that this page serves. */
export interface Route {
  /** What to give to a client: `new OpenAI({ baseURL })`. */
  readonly baseURL: string;
  /**
   * Stops answering; what is under way breaks off. The service worker is unregistered, unless it is the site's own. Pages that
   * it controls keep it until they are left: their requests are answered by other pages that serve, else with 503.
   */
  unregister(): Promise<void>;
}

/** Browsers tell a service worker of an abort only by its response's body (whole answers begin after so long). */
const AHEAD_MS = 500;
const SCRIPT = 'pagewise-service-worker.js';
/** A worker that takes longer to install or to answer is none of ours. */
const READY_MS = 20_000;

/**
 * Serves OpenAI's API to all pages of the site under a path (`/v1/` by default), from this page's engine: registers the service
 * worker, waits until it controls this page, and answers what it passes on, as {@link handleRequest} does. A request is
 * answered by a page that has the model it asks for; without any open page that serves, it is a 503 with what to do.
 *
 * Rejects with `bad_request` where there can be no service worker; {@link createFetch} needs none.
 */
export async function registerRoute(engine: Engine, options?: RouteOptions): Promise<Route> {
  const checked = checkOptions('registerRoute', options, {
    scriptURL: 'any',
    scope: 'any',
    path: 'any',
    registration: 'any',
    maxBodyBytes: 'any',
  });
  const container = globalThis.navigator?.serviceWorker;
  if (container === undefined) {
    throw bad('registerRoute: there are no service workers here: pages over https or from localhost have them');
  }
  const registration = checked.registration ?? (await register(container, checked));
  const url = await claim(container, registration);
  const { maxBodyBytes } = checked;
  const page = new ServingPage(engine, container, url, maxBodyBytes === undefined ? {} : { maxBodyBytes });
  return {
    baseURL: url.replace(/\/$/, ''),
    async unregister() {
      page.stop();
      if (checked.registration === undefined) await registration.unregister();
    },
  };
}

async function register(container: ServiceWorkerContainer, options: RouteOptions): Promise<ServiceWorkerRegistration> {
  const script = new URL(options.scriptURL ?? SCRIPT, document.baseURI);
  const scope = new URL(options.scope ?? './', options.scope === undefined ? script : document.baseURI);
  scope.search = '';
  const path = (options.path ?? 'v1/').replace(/\/?$/, '/');
  if (!new URL(path, scope).href.startsWith(scope.href)) {
    throw bad(`registerRoute: path: something under the scope ${scope.href} is needed, ${show(path)} given`);
  }
  script.searchParams.set('path', path);
  if (!location.href.startsWith(scope.href)) {
    throw bad(`registerRoute: scope: this page, ${location.href}, is not under ${scope.href}`);
  }
  const found = await container.getRegistration(scope);
  const other = found?.scope === scope.href ? scriptOf(found) : undefined;
  if (other !== undefined && other.origin + other.pathname !== script.origin + script.pathname) {
    throw bad(
      `registerRoute: ${scope.href} has another service worker, ${other.href}: have it import ours (importScripts) and pass its registration`,
    );
  }
  try {
    return await container.register(script, { scope: scope.href });
  } catch (cause) {
    const hint = 'it has to be served by this site as JavaScript, from the scope or above, and allowed by worker-src';
    const text = `registerRoute: ${script.href} cannot be a service worker: ${(cause as Error).message}; ${hint}`;
    throw new PagewiseError('bad_request', text, { cause });
  }
}

function scriptOf({ active, waiting, installing }: ServiceWorkerRegistration): URL | undefined {
  const worker = installing ?? waiting ?? active;
  return worker === null ? undefined : new URL(worker.scriptURL);
}

/** Waits until the worker controls this page; answers the route's URL. */
async function claim(container: ServiceWorkerContainer, registration: ServiceWorkerRegistration): Promise<string> {
  const deadline = performance.now() + READY_MS;
  const worker = await activeWorker(registration, deadline);
  const { port1, port2 } = new MessageChannel();
  const reply = new Promise<ReadyMessage>((resolve) => {
    port1.onmessage = ({ data }: MessageEvent<ReadyMessage>) => resolve(data);
  });
  worker.postMessage({ type: 'pagewise-claim' } satisfies ClaimMessage, [port2]);
  const ready = await before(deadline, reply, 'the service worker does not answer: is ours in it?');
  port1.close();
  if (ready.version !== ROUTE_VERSION) {
    throw bad('registerRoute: the service worker is of another version of the package: copy it anew');
  }
  // The claim's event may come after its answer.
  const controlled = new Promise<void>((resolve) => {
    const look = (): void => {
      if (container.controller?.scriptURL !== worker.scriptURL) return;
      container.removeEventListener('controllerchange', look);
      resolve();
    };
    container.addEventListener('controllerchange', look);
    look();
  });
  await before(deadline, controlled, 'the service worker does not control this page: is the page in its scope?');
  return ready.url;
}

/** The worker once it is active: the newest one, which takes the place of older ones by itself. */
async function activeWorker(registration: ServiceWorkerRegistration, deadline: number): Promise<ServiceWorker> {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  if (worker === null) throw bad('registerRoute: the registration has no service worker');
  const activated = new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (worker.state === 'activated') resolve();
      if (worker.state === 'redundant') reject(bad('registerRoute: the service worker failed to install'));
    };
    worker.addEventListener('statechange', look);
    look();
  });
  await before(deadline, activated, 'the service worker does not become active');
  return worker;
}

async function before<T>(deadline: number, work: Promise<T>, otherwise: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(bad(`registerRoute: ${otherwise}`)), Math.max(0, deadline - performance.now()));
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Answers the worker's questions and requests. */
class ServingPage {
  readonly #engine: Engine;
  readonly #container: ServiceWorkerContainer;
  readonly #url: string;
  readonly #options: { path: string; maxBodyBytes?: number };
  readonly #listener = (event: MessageEvent<AskMessage>): void => this.#receive(event);
  /** Breaks off each of the requests. */
  readonly #active = new Set<() => void>();

  constructor(engine: Engine, container: ServiceWorkerContainer, url: string, options: { maxBodyBytes?: number }) {
    this.#engine = engine;
    this.#container = container;
    this.#url = url;
    this.#options = { ...options, path: new URL(url).pathname };
    container.addEventListener('message', this.#listener);
    // Before a page is complete, messages wait unless asked for.
    container.startMessages();
  }

  stop(): void {
    this.#container.removeEventListener('message', this.#listener);
    for (const breakOff of [...this.#active]) breakOff();
  }

  #receive({ data, ports: [port] }: MessageEvent<AskMessage>): void {
    const isForUs = data?.type === 'pagewise-ask' && data.version === ROUTE_VERSION && data.url === this.#url;
    if (!isForUs || port === undefined || this.#engine.ended !== null) return;
    const { id, name } = this.#engine.info;
    const hasModel = data.model === null || data.model === id || data.model === name;
    const breakOff = answerOverPort(
      port,
      hasModel,
      (request) => answerRequest(this.#engine, request, this.#options, AHEAD_MS),
      () => this.#active.delete(breakOff),
    );
    this.#active.add(breakOff);
  }
}
