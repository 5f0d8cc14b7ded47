/**
 * The requests of all pages: those that the engine has, under ids of the worker's own, and those that wait for what compiles
 * their constraints. Everything here happens between steps.
 */

import { cancelledError, type ErrorRecord, PagewiseError } from './errors.js';
import { type GrammarModule, Grammars } from './grammars.js';
import type { CallMessage, EngineRequest, RequestEvent } from './protocol.js';
import type { ServedPage } from './served-page.js';
import type { WasmEngine } from './wasm.js';

/** A request as a page sends it. */
export type SubmitMessage = Extract<CallMessage, { type: 'submit' }>;

/** A request that the engine has. */
interface ActiveRequest {
  page: ServedPage;
  /** What the page calls it. */
  id: number;
  /** What traces call it. */
  name: string;
  /** Answers that have not ended yet. */
  numLeft: number;
}

/** See the file's comment. */
export class Requests {
  readonly #active = new Map<number, ActiveRequest>();
  readonly #grammars: Grammars;
  #nextId = 1;

  /** `loadGrammars` starts the module that compiles constraints. */
  constructor(loadGrammars: () => Promise<GrammarModule>) {
    this.#grammars = new Grammars(loadGrammars);
  }

  /**
   * Whether a request has to wait for what compiles its constraint: not twice. It then has an id, with which `again` is called
   * when it is to come again; if it never can, its page is told.
   */
  waits(engine: WasmEngine, page: ServedPage, message: SubmitMessage, again: (own: number) => void): boolean {
    if (!needsGrammars(message.request) || this.#grammars.isReady(engine)) return false;
    const own = this.#idFor(page, message);
    this.#grammars.waitFor(own, (failure) => {
      if (failure === undefined) {
        again(own);
        return;
      }
      page.requests.delete(message.id);
      page.post({ type: 'error', id: message.id, error: failure.toRecord() });
    });
    return true;
  }

  /** Gives the engine a request, under the id that it has if it has waited; returns the number of tokens of its prompt. */
  submit(engine: WasmEngine, page: ServedPage, message: SubmitMessage, arrivedMs: number, waited?: number): number {
    const { id, request, name } = message;
    // It was cancelled while it was on its way back.
    if (waited !== undefined && page.requests.get(id) !== waited) throw cancelledError();
    const own = waited ?? this.#idFor(page, message);
    try {
      const promptTokens = engine.submit(own, request, arrivedMs);
      this.#active.set(own, { page, id, name, numLeft: request.numChoices });
      return promptTokens;
    } catch (error) {
      page.requests.delete(id);
      throw error;
    }
  }

  /** Ends a page's request, if there is such a one. */
  cancel(engine: WasmEngine | undefined, page: ServedPage, id: number): void {
    const own = page.requests.get(id);
    if (own === undefined) return;
    page.requests.delete(id);
    if (this.#active.delete(own)) engine?.cancel(own);
    // Nobody has answered it yet.
    else if (this.#grammars.cancel(own)) page.post({ type: 'error', id, error: cancelledError().toRecord() });
  }

  /** Ends all requests of a page. */
  cancelAll(engine: WasmEngine | undefined, page: ServedPage): void {
    for (const id of [...page.requests.keys()]) this.cancel(engine, page, id);
  }

  /** Fails all that the engine has. */
  failAll(engine: WasmEngine, error: ErrorRecord): void {
    const all = [...this.#active.keys()];
    this.tell(all.map((request) => ({ kind: 'failed' as const, request, error })));
    for (const request of all) engine.cancel(request);
  }

  /** Tells each page what happened to its own requests, under its own ids. */
  tell(events: readonly RequestEvent[]): void {
    const byPage = new Map<ServedPage, RequestEvent[]>();
    for (const event of events) {
      const active = this.#active.get(event.request);
      if (active === undefined) continue;
      const { page, id } = active;
      const own = byPage.get(page) ?? [];
      own.push({ ...event, request: id });
      byPage.set(page, own);
      if (event.kind === 'finished') active.numLeft -= 1;
      if (event.kind !== 'failed' && active.numLeft > 0) continue;
      this.#active.delete(event.request);
      page.requests.delete(id);
    }
    for (const [page, own] of byPage) page.post({ type: 'events', events: own });
  }

  /** The same with what traces call the request. */
  named<T extends { request: number }>(answer: T): Omit<T, 'request'> & { request: string } {
    return { ...answer, request: this.#active.get(answer.request)?.name ?? '' };
  }

  #idFor(page: ServedPage, { id }: SubmitMessage): number {
    if (page.requests.has(id)) throw new PagewiseError('bad_request', `submit: there is a request ${id} already`);
    const own = this.#nextId++;
    page.requests.set(id, own);
    return own;
  }
}

/** Whether an answer is drawn by a grammar: also where it has to be a call, or its arguments keep to a schema. */
function needsGrammars({ constraint, tools, prefillOnly }: EngineRequest): boolean {
  if (prefillOnly === true) return false;
  const isStrict = tools?.list.some((tool) => tool.function.strict === true) ?? false;
  return constraint !== undefined || tools?.isRequired === true || isStrict;
}
