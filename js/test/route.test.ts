import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AskMessage } from '../src/route-protocol.js';
import { answerOverPort, type Handle } from '../src/route-server.js';

const SCRIPT = '../src/service-worker.js';
const WORKER = 'https://site/app/sw.js?path=v1/';

interface FetchEvent {
  request: { url: string; method: string; mode: string };
  response: Promise<Response> | undefined;
  /** Whether the worker has to be kept. */
  isOver: boolean;
}

/** A page of the site. */
interface FakePage {
  id: string;
  asked: AskMessage[];
  numActive: number;
  breakOff: () => void;
  postMessage(message: AskMessage, ports: MessagePort[]): void;
}

/** A service worker's global scope around the real script. */
class FakeScope {
  readonly listeners = new Map<string, (event: never) => void>();
  readonly pages: FakePage[] = [];
  readonly claim = vi.fn(async () => undefined);
  readonly skipWaiting = vi.fn(async () => undefined);

  async start(location = WORKER): Promise<this> {
    vi.stubGlobal('location', new URL(location));
    vi.stubGlobal('registration', { scope: 'https://site/app/' });
    vi.stubGlobal('navigator', {});
    vi.stubGlobal('clients', {
      claim: this.claim,
      get: async (id: string) => this.pages.find((page) => page.id === id),
      matchAll: async () => this.pages,
    });
    vi.stubGlobal('skipWaiting', this.skipWaiting);
    vi.stubGlobal('addEventListener', (type: string, listener: (event: never) => void) =>
      this.listeners.set(type, listener),
    );
    vi.resetModules();
    // A script and no module, which only its types tell apart.
    await import(/* @vite-ignore */ SCRIPT);
    return this;
  }

  /** A page that serves a model, another one (false), or nothing. */
  add(hasModel: boolean | null, handle: Handle = async () => new Response('')): FakePage {
    const page: FakePage = {
      id: `page ${this.pages.length}`,
      asked: [],
      numActive: 0,
      breakOff: () => undefined,
      postMessage: (message, [port]) => {
        page.asked.push(message);
        if (hasModel === null || port === undefined) return;
        page.numActive += 1;
        page.breakOff = answerOverPort(port, hasModel, handle, () => {
          page.numActive -= 1;
        });
      },
    };
    this.pages.push(page);
    return page;
  }

  fetch(url: string, init: RequestInit & { mode?: RequestMode } = {}): FetchEvent {
    const { mode, ...others } = init;
    // No script can make a request that navigates.
    const request = mode === undefined ? new Request(url, others) : ({ url, method: 'GET', mode } as Request);
    const event: FetchEvent = { request, response: undefined, isOver: false };
    const listener = this.listeners.get('fetch') as (event: object) => void;
    listener({
      request,
      waitUntil: (work: Promise<unknown>) => void work.then(() => Object.assign(event, { isOver: true })),
      respondWith: (response: Promise<Response>) => Object.assign(event, { response }),
    });
    return event;
  }
}

const post = (body: string, init: RequestInit = {}): RequestInit => ({ method: 'POST', body, ...init });
const CHAT = 'https://site/app/v1/chat/completions';
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
};

const decode = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

/** Bytes that come one after the other for ever, as they are read. */
function endless(onCancel: () => void = () => undefined, type = 'text/event-stream'): Handle {
  return async ({ signal }) => {
    signal.addEventListener('abort', onCancel);
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void =>
      controller.enqueue(new TextEncoder().encode('data: 1\n\n'));
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers: { 'content-type': type } });
  };
}

let scope: FakeScope;
beforeEach(async () => {
  scope = await new FakeScope().start();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('the service worker', () => {
  test('passes on no body that is longer than anybody wants', async () => {
    scope.add(true);
    let numRead = 0;
    const onCancel = vi.fn();
    const mebibyte = new Uint8Array(1024 ** 2);
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      numRead += 1;
      controller.enqueue(mebibyte);
    };
    const body = new ReadableStream<Uint8Array>({ pull, cancel: onCancel }, { highWaterMark: 0 });
    const event = scope.fetch(CHAT, { method: 'POST', body, duplex: 'half' } as RequestInit);
    const response = (await event.response) as Response;
    expect([response.status, (await response.json()).error.code]).toEqual([413, 'body_too_large']);
    expect([numRead, onCancel.mock.calls.length]).toEqual([65, 1]);
    expect(event.isOver).toBe(true);
  });

  test('leaves alone what is not the route, and navigations', () => {
    scope.add(true);
    for (const url of ['https://site/app/', 'https://site/v1/models', 'https://other/app/v1/models']) {
      expect(scope.fetch(url).response).toBe(undefined);
    }
    expect(scope.fetch('https://site/app/v1/models', { mode: 'navigate' }).response).toBe(undefined);
    expect(scope.fetch('https://site/app/v1/models').response).toBeDefined();
  });

  test('passes a request to the page and its answer back, as they are', async () => {
    const seen: unknown[] = [];
    const page = scope.add(true, async (request) => {
      seen.push(request.url, request.method, request.headers.get('x-own'), await request.text());
      return new Response('né', { status: 418, headers: { 'x-pagewise-queue-depth': '2' } });
    });
    const event = scope.fetch(`${CHAT}?a=1`, post('{"model":"m"}', { headers: { 'x-own': '5' } }));
    const response = (await event.response) as Response;
    expect([response.status, response.headers.get('x-pagewise-queue-depth')]).toEqual([418, '2']);
    expect(await response.text()).toBe('né');
    expect(seen).toEqual([`${CHAT}?a=1`, 'POST', '5', '{"model":"m"}']);
    expect(page.asked).toMatchObject([{ version: 1, url: 'https://site/app/v1/', model: 'm' }]);
    await until(() => event.isOver && page.numActive === 0);
  });

  test('chooses a page with the right model, else one that can say what is wrong', async () => {
    const named =
      (name: string): Handle =>
      async () =>
        new Response(name);
    scope.add(null);
    scope.add(false, named('wrong'));
    const text = async (): Promise<string> =>
      ((await scope.fetch(CHAT, post('{"model":"m"}')).response) as Response).text();
    expect(await text()).toBe('wrong');
    scope.add(true, named('right'));
    expect(await text()).toBe('right');
    await until(() => scope.pages.every((page) => page.numActive === 0));
  });

  test('without a page that answers says what to do', async () => {
    const of = async (afterMs: number): Promise<unknown[]> => {
      const event = scope.fetch(CHAT, post('{}'));
      await vi.advanceTimersByTimeAsync(afterMs);
      const response = (await event.response) as Response;
      const { error } = await response.json();
      expect(error).toMatchObject({
        type: 'server_error',
        param: null,
        message: expect.stringContaining('registerRoute'),
      });
      expect(event.isOver).toBe(true);
      return [response.status, error.code, response.headers.get('retry-after')];
    };
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    expect(await of(0)).toEqual([503, 'no_engine', '1']);
    scope.add(null);
    expect(await of(3000)).toEqual([503, 'no_engine', '1']);
  });

  test('reads only as fast as the client does, and cancels when it stops', async () => {
    const onCancel = vi.fn();
    const page = scope.add(true, endless(onCancel));
    const event = scope.fetch(CHAT, post('{}'));
    const reader = ((await event.response) as Response).body?.getReader();
    expect(decode((await reader?.read())?.value)).toBe('data: 1\n\n');
    expect([event.isOver, onCancel.mock.calls.length]).toEqual([false, 0]);
    await reader?.cancel();
    await until(() => event.isOver && page.numActive === 0);
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  test('an abort before the answer cancels it', async () => {
    const onCancel = vi.fn();
    const page = scope.add(true, ({ signal }) => {
      signal.addEventListener('abort', onCancel);
      return new Promise(() => undefined);
    });
    const controller = new AbortController();
    const event = scope.fetch(CHAT, post('{}', { signal: controller.signal }));
    await until(() => page.numActive === 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    controller.abort(new Error('no longer'));
    await expect(event.response).rejects.toThrow('no longer');
    await until(() => event.isOver && page.numActive === 0);
    expect(onCancel).toHaveBeenCalledTimes(1);
  });

  test.each(['is closed', 'answers no longer'])(
    'when the page %s, streams end with an error and others break',
    async (how) => {
      const page = scope.add(true, endless());
      const stop = (): void => {
        if (how === 'is closed') scope.pages.length = 0;
        else page.breakOff();
      };
      const event = scope.fetch(CHAT, post('{}'));
      const reader = (((await event.response) as Response).body as ReadableStream<Uint8Array>).getReader();
      let text = decode((await reader.read()).value);
      stop();
      for (let next = await reader.read(); !next.done; next = await reader.read()) text += decode(next.value);
      expect(text).toMatch(/data: 1\n\ndata: {"error":{.*"code":"no_engine"}}\n\n$/);
      await until(() => event.isOver);

      scope.pages.splice(0, 1);
      scope.add(true, endless(undefined, 'application/json'));
      const whole = (await scope.fetch(CHAT, post('{}')).response) as Response;
      if (how === 'is closed') scope.pages.length = 0;
      else scope.pages[0]?.breakOff();
      await expect(whole.text()).rejects.toThrow(/answer/);

      scope.pages.length = 0;
      const silent = scope.add(true, () => new Promise(() => undefined));
      const pending = scope.fetch(CHAT, post('{}'));
      await until(() => silent.numActive === 1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (how === 'is closed') scope.pages.length = 0;
      else silent.breakOff();
      expect(((await pending.response) as Response).status).toBe(503);
    },
  );

  test('a failure of the page itself is a 503', async () => {
    scope.add(true, () => Promise.reject(new Error('a bug')));
    const response = (await scope.fetch(CHAT, post('{}')).response) as Response;
    expect([response.status, (await response.json()).error.message]).toEqual([503, 'a bug']);
  });

  test('claims its pages at once, unless it is a part of another worker', async () => {
    const fire = async (type: string, more: object = {}): Promise<void> => {
      const works: Promise<unknown>[] = [];
      const listener = scope.listeners.get(type) as ((event: object) => void) | undefined;
      listener?.({ waitUntil: (work: Promise<unknown>) => works.push(work), ...more });
      await Promise.all(works);
    };
    await fire('install');
    await fire('activate');
    expect([scope.skipWaiting.mock.calls.length, scope.claim.mock.calls.length]).toEqual([1, 1]);
    scope = await new FakeScope().start('https://site/app/own.js');
    await fire('install');
    await fire('activate');
    expect([scope.skipWaiting.mock.calls.length, scope.claim.mock.calls.length]).toEqual([0, 0]);
    const port = { postMessage: vi.fn() };
    await fire('message', { data: { type: 'another' }, ports: [port] });
    expect(port.postMessage).not.toHaveBeenCalled();
    await fire('message', { data: { type: 'pagewise-claim' }, ports: [port] });
    expect(scope.claim).toHaveBeenCalledTimes(1);
    expect(port.postMessage).toHaveBeenCalledWith({ type: 'ready', version: 1, url: 'https://site/app/v1/' });
  });
});
