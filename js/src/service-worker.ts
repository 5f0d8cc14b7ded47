/**
 * The service worker's script: requests under the route's path are answered by a page that has an engine, all others are left
 * alone. It keeps nothing that a restart would lose.
 *
 * A classic script without imports, so that every browser takes it, a site can copy it where its scope has to be, and another
 * service worker can `importScripts` it. The query `?path=` says what the route's path is; `v1/` of the scope by default.
 */
{
  type AskMessage = import('./route-protocol.js').AskMessage;
  type ClaimMessage = import('./route-protocol.js').ClaimMessage;
  type ReadyMessage = import('./route-protocol.js').ReadyMessage;
  type ToPage = import('./route-protocol.js').ToPage;
  type ToServiceWorker = import('./route-protocol.js').ToServiceWorker;

  /** What is used of a service worker's global scope; the DOM's types know only the page's. */
  interface Page {
    readonly id: string;
    postMessage(message: AskMessage, transfer: Transferable[]): void;
  }
  interface LongEvent extends Event {
    waitUntil(work: Promise<unknown>): void;
  }
  interface RequestEvent extends LongEvent {
    readonly request: Request;
    respondWith(response: Promise<Response>): void;
  }
  interface Scope {
    readonly location: Location;
    readonly registration: ServiceWorkerRegistration;
    readonly clients: {
      claim(): Promise<void>;
      get(id: string): Promise<Page | undefined>;
      matchAll(options: { type: 'window'; includeUncontrolled: true }): Promise<readonly Page[]>;
    };
    skipWaiting(): Promise<void>;
    addEventListener(type: 'install', listener: (event: LongEvent) => void): void;
    addEventListener(type: 'activate', listener: (event: LongEvent) => void): void;
    addEventListener(type: 'fetch', listener: (event: RequestEvent) => void): void;
    addEventListener(type: 'message', listener: (event: MessageEvent<ClaimMessage> & LongEvent) => void): void;
  }
  /** A page that answers. */
  interface Server {
    page: Page;
    port: MessagePort;
  }

  const VERSION = 1;
  /** A page whose main thread is busy for longer is not found. */
  const FIND_MS = 3000;
  /** So long a page with the right model is waited for when one with another model has offered. */
  const BETTER_MS = 300;
  /** How often it is looked whether the page that answers is still there. */
  const LOOK_MS = 500;
  /** Longest body that is passed on: pages have limits of their own, but the worker holds it until it knows which page. */
  const MAX_BODY_BYTES = 64 * 1024 ** 2;

  const scope = globalThis as unknown as Scope;
  const path = new URL(scope.location.href).searchParams.get('path');
  const route = new URL(path ?? 'v1/', scope.registration.scope);

  /** See `life` in the protocol. */
  let life: Promise<string | null> | undefined;

  // With a path, `registerRoute` has registered this script itself; else it is a part of another one, which decides.
  if (path !== null) {
    scope.addEventListener('install', (event) => event.waitUntil(scope.skipWaiting()));
    scope.addEventListener('activate', (event) => event.waitUntil(scope.clients.claim()));
  }

  scope.addEventListener('message', (event) => {
    const [port] = event.ports;
    if (event.data?.type !== 'pagewise-claim' || port === undefined) return;
    const ready: ReadyMessage = { type: 'ready', version: VERSION, url: route.href };
    event.waitUntil(scope.clients.claim().then(() => port.postMessage(ready)));
  });

  scope.addEventListener('fetch', (event) => {
    const { request } = event;
    const url = new URL(request.url);
    const isOurs = url.origin === route.origin && url.pathname.startsWith(route.pathname);
    // A navigation may come from another site; only pages of this one may use the engine.
    if (!isOurs || request.mode === 'navigate') return;
    let end: () => void = () => undefined;
    // The answer may be longer than the worker is kept for its beginning.
    event.waitUntil(
      new Promise<void>((resolve) => {
        end = resolve;
      }),
    );
    event.respondWith(
      answer(request, end).catch((error: unknown) => {
        end();
        throw error;
      }),
    );
  });

  async function answer(request: Request, onEnd: () => void): Promise<Response> {
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
    const body = hasBody ? await readBody(request) : null;
    if (body === undefined) {
      onEnd();
      return tooLong();
    }
    const server = await findServer(modelOf(body));
    life ??= takeLife();
    if (server !== undefined) return relay(request, { body, life: await life }, server, onEnd);
    onEnd();
    return unavailable('no open page has a model: open one of this site that loads it and calls registerRoute');
  }

  /** Undefined if it is too long; then no more of it is read than it takes to know that. */
  async function readBody(request: Request): Promise<ArrayBuffer | undefined> {
    if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return undefined;
    // Not every browser lets a request's body be read piece by piece.
    const pieces = (request.body ?? undefined) as ReadableStream<Uint8Array<ArrayBuffer>> | undefined;
    if (pieces === undefined) {
      const blob = await request.blob();
      return blob.size > MAX_BODY_BYTES ? undefined : blob.arrayBuffer();
    }
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    const reader = pieces.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      length += next.value.length;
      if (length > MAX_BODY_BYTES) {
        reader.cancel().catch(() => undefined);
        return undefined;
      }
      parts.push(next.value);
    }
    return new Blob(parts).arrayBuffer();
  }

  function takeLife(): Promise<string | null> {
    const { locks } = globalThis.navigator;
    if (locks === undefined) return Promise.resolve(null);
    const name = `pagewise-worker-${crypto.randomUUID()}`;
    return new Promise((resolve) => {
      const held = new Promise<never>(() => undefined);
      const hold = (): Promise<never> => {
        resolve(name);
        return held;
      };
      locks.request(name, hold).catch(() => resolve(null));
    });
  }

  /** The request's `model`; whether it is a sound request is for the page to say. */
  function modelOf(body: ArrayBuffer | null): string | null {
    try {
      const { model } = JSON.parse(new TextDecoder().decode(body ?? undefined)) as { model?: unknown };
      return typeof model === 'string' ? model : null;
    } catch {
      return null;
    }
  }

  /** The first page that offers to answer with this model, else one that has another. */
  async function findServer(model: string | null): Promise<Server | undefined> {
    const pages = await scope.clients.matchAll({ type: 'window', includeUncontrolled: true });
    const servers = pages.map((page): Server & { theirs: MessagePort } => {
      const { port1: port, port2: theirs } = new MessageChannel();
      return { page, port, theirs };
    });
    const chosen = await new Promise<Server | undefined>((resolve) => {
      let second: Server | undefined;
      setTimeout(() => resolve(second), pages.length === 0 ? 0 : FIND_MS);
      for (const server of servers) {
        server.port.onmessage = ({ data }: MessageEvent<ToServiceWorker>) => {
          if (data.type !== 'offer') return;
          if (data.hasModel) return resolve(server);
          second ??= server;
          setTimeout(() => resolve(second), BETTER_MS);
        };
        const ask: AskMessage = { type: 'pagewise-ask', version: VERSION, url: route.href, model };
        server.page.postMessage(ask, [server.theirs]);
      }
    });
    for (const { port } of servers) if (port !== chosen?.port) letGo(port);
    return chosen;
  }

  function letGo(port: MessagePort): void {
    port.postMessage({ type: 'cancel' } satisfies ToPage);
    port.close();
  }

  /** Has the page answer, and passes on what it sends as it is asked for. */
  function relay(
    request: Request,
    given: { body: ArrayBuffer | null; life: string | null },
    server: Server,
    onEnd: () => void,
  ): Promise<Response> {
    const { port, page } = server;
    const { url, method, signal } = request;
    return new Promise((resolve, reject) => {
      let hasEnded = false;
      let passed: Passed | undefined;
      const end = (): void => {
        if (hasEnded) return;
        hasEnded = true;
        clearInterval(looking);
        letGo(port);
        onEnd();
      };
      const breakOff = (message: string): void => {
        if (hasEnded) return;
        end();
        if (passed === undefined) resolve(unavailable(message));
        else passed.breakOff(message);
      };
      // Not every browser tells of a port whose other end is gone.
      const looking = setInterval(async () => {
        if ((await scope.clients.get(page.id)) === undefined) breakOff('the page that was answering was closed');
      }, LOOK_MS);
      port.onmessage = ({ data }: MessageEvent<ToServiceWorker>) => {
        // What was on its way when the port was closed may still come.
        if (hasEnded) return;
        if (data.type === 'response') {
          passed = passOn(data, () => port.postMessage({ type: 'pull' } satisfies ToPage), end);
          resolve(passed.response);
        } else if (data.type === 'chunk') passed?.stream.enqueue(data.bytes);
        else if (data.type === 'broken') breakOff(data.message);
        else if (data.type === 'end') {
          passed?.stream.close();
          end();
        }
      };
      signal.addEventListener('abort', () => {
        end();
        reject(signal.reason);
      });
      const message: ToPage = { type: 'request', url, method, headers: [...request.headers], ...given };
      port.postMessage(message, given.body === null ? [] : [given.body]);
    });
  }

  /** A response whose body comes piece by piece. */
  interface Passed {
    response: Response;
    stream: ReadableStreamDefaultController<Uint8Array>;
    breakOff(message: string): void;
  }

  function passOn(
    { status, headers }: ToServiceWorker & { type: 'response' },
    pull: () => void,
    cancel: () => void,
  ): Passed {
    let stream!: ReadableStreamDefaultController<Uint8Array>;
    const start = (controller: typeof stream): void => {
      stream = controller;
    };
    const response = new Response(new ReadableStream({ start, pull, cancel }), { status, headers });
    const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const breakOff = (message: string): void => {
      if (isEvents) {
        stream.enqueue(new TextEncoder().encode(`data: ${errorText(message)}\n\n`));
        stream.close();
      } else stream.error(new TypeError(message));
    };
    return { response, stream, breakOff };
  }

  /** OpenAI's clients come again by themselves. */
  function unavailable(message: string): Response {
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store', 'retry-after': '1' };
    return new Response(errorText(message), { status: 503, headers });
  }

  function tooLong(): Response {
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
    const message = `the body is longer than ${MAX_BODY_BYTES} bytes`;
    const error = { message, type: 'invalid_request_error', param: null, code: 'body_too_large' };
    return new Response(JSON.stringify({ error }), { status: 413, headers });
  }

  function errorText(message: string): string {
    return JSON.stringify({ error: { message, type: 'server_error', param: null, code: 'no_engine' } });
  }
}
