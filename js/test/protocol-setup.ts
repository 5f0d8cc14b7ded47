/** What the tests of the worker's protocol have in common. */

import { afterEach, beforeEach, expect, vi } from 'vitest';
import type { ChannelEvents } from '../src/channel.js';
import { WorkerClient } from '../src/client.js';
import type { GrammarModule } from '../src/grammars.js';
import { type EngineRequest, type FromWorker, PROTOCOL_VERSION, type ToWorker } from '../src/protocol.js';
import { checkTextRequest } from '../src/request.js';
import { VERSION } from '../src/version.js';
import { WorkerLoop } from '../src/worker-loop.js';
import { fakeEnvironment, fakeModel } from './fake.js';
import { FakeEngine } from './fake-engine.js';

export const HELLO = { type: 'hello', protocol: PROTOCOL_VERSION, version: VERSION, life: null };
export const LOAD = {
  type: 'load',
  id: 1,
  source: { id: 'fake', parts: [{ kind: 'blob', blob: fakeModel(), name: 'fake.gguf' }], headers: {} },
  options: { kv: 'f16', autotune: false, precision: 'full' },
  store: false,
  group: null,
};
export const request = (more: object = {}): EngineRequest =>
  checkTextRequest({ prompt: 'abc', ...more }, []).engineRequest;

/** A function that may be called, and one whose arguments keep to a schema. */
export const TOOLS = {
  list: [
    { type: 'function', function: { name: 'a' } },
    { type: 'function', function: { name: 'b', strict: true, parameters: { type: 'object' } } },
  ],
  isRequired: false,
  isParallel: true,
};
export const POLICY = { kind: 'tail_aware', ttftTargetMs: 200, prefillTokensPerS: 100, nextTurnTokens: 50 };
export const SCHEMA = { name: 'a', json: '{}', field: 'response_format' };
export const submitOf = (constraint: unknown, id = 5): object => {
  return { type: 'submit', id, request: { ...request(), constraint }, name: 'x' };
};

/** No test of a file leaves a rejection that nobody handles. */
export function watchRejections(): void {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  beforeEach(() => process.on('unhandledRejection', note));
  afterEach(() => {
    process.off('unhandledRejection', note);
    expect(unhandled.splice(0)).toEqual([]);
  });
}

/** A loop without a page: messages in, messages out. */
export class RawWorker {
  readonly posted: FromWorker[] = [];
  readonly engine = new FakeEngine({});
  /** What compiles constraints takes its time. */
  readonly loadGrammars = () =>
    new Promise<GrammarModule>((resolve) => setTimeout(() => resolve({ createGrammars: null }), 10));
  readonly loop = new WorkerLoop(fakeEnvironment({ loadGrammars: this.loadGrammars }, this.engine));
  readonly send = this.loop.connect((message) => this.posted.push(message), { isOwner: true });

  constructor() {
    void this.loop.run();
  }

  /** The answer to a call. */
  async answer(message: unknown, id: unknown): Promise<FromWorker> {
    this.send(message);
    const isAnswer = (posted: FromWorker): boolean =>
      (posted.type === 'result' || posted.type === 'error') && posted.id === id;
    return vi.waitFor(() => {
      const found = this.posted.find(isAnswer);
      if (found === undefined) throw new Error(`no answer to ${JSON.stringify(message)}`);
      return found;
    });
  }
}

/** A client of which the worker is played by hand. */
export function byHand(): { client: WorkerClient; sent: ToWorker[]; tell: (message: unknown) => void } {
  const sent: ToWorker[] = [];
  let events: ChannelEvents | undefined;
  const client = new WorkerClient((given) => {
    events = given;
    return { post: (message) => void sent.push(message), end: () => undefined };
  });
  return { client, sent, tell: (message) => events?.onMessage(message) };
}
