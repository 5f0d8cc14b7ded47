/**
 * One session of the Prompt API: a conversation on a loaded engine.
 *
 * The history is a list of messages and nothing else. What was computed for it lies in the engine's prefix cache, so that a
 * clone is a copy of that list: its blocks are shared. Nothing is pinned, because a page that forgets a session would keep
 * its blocks for ever; what is used last is given up last as it is.
 */

import { unlessAborted } from './abort.js';
import { ConversationBudget } from './budget.js';
import type { Engine } from './engine.js';
import { PagewiseError } from './errors.js';
import type { ChatCompletionCreateParams, ChatMessage } from './openai.js';
import {
  type LanguageModelPrompt,
  type LanguageModelPromptOptions,
  quotaExceeded,
  toConstraint,
  toException,
  toMessages,
} from './prompt-input.js';

/** How a session draws its answers. */
export interface Sampling {
  temperature: number;
  topK: number;
  samplingMode: string;
}

/** A part of the context that is kept free for the answer. */
const ANSWER_PART = 1 / 8;

/** Tokens of a conversation, with the opening of an answer. */
export async function countTokens(engine: Engine, messages: readonly ChatMessage[]): Promise<number> {
  if (messages.length === 0) return 0;
  const text = await engine.applyTemplate(messages);
  return (await engine.tokenize(text, { parseSpecial: true })).length;
}

/** A session; made by `LanguageModel.create()` and {@link LanguageModelSession.clone}. */
export class LanguageModelSession extends EventTarget {
  readonly #engine: Engine;
  readonly #sampling: Sampling;
  readonly #budget: ConversationBudget;
  readonly #end = new AbortController();
  #messages: readonly ChatMessage[];
  #usage: number;
  #turn: Promise<unknown> = Promise.resolve();
  #onoverflow: ((event: Event) => void) | null = null;

  /** @internal */
  constructor(engine: Engine, sampling: Sampling, messages: readonly ChatMessage[], usage: number) {
    super();
    this.#engine = engine;
    this.#sampling = sampling;
    this.#messages = messages;
    this.#usage = usage;
    const contextTokens = engine.info.contextLength;
    this.#budget = new ConversationBudget({
      contextTokens,
      answerTokens: Math.floor(contextTokens * ANSWER_PART),
      countTokens: (given) => countTokens(engine, given),
      overflow: 'drop_oldest_turns',
      keepTurns: 1,
    });
  }

  /** Tokens of the conversation so far. */
  get contextUsage(): number {
    return this.#usage;
  }

  /** Tokens that a conversation may have. */
  get contextWindow(): number {
    return this.#engine.info.contextLength;
  }

  /** Most probable tokens that are drawn among. */
  get topK(): number {
    return this.#sampling.topK;
  }

  /** 0 is greedy. */
  get temperature(): number {
    return this.#sampling.temperature;
  }

  /** As it was given to `create()`. */
  get samplingMode(): string {
    return this.#sampling.samplingMode;
  }

  /** Called when the oldest turns were left out because the conversation had become too long. */
  get oncontextoverflow(): ((event: Event) => void) | null {
    return this.#onoverflow;
  }

  set oncontextoverflow(handler: ((event: Event) => void) | null) {
    if (this.#onoverflow !== null) this.removeEventListener('contextoverflow', this.#onoverflow);
    this.#onoverflow = typeof handler === 'function' ? handler : null;
    if (this.#onoverflow !== null) this.addEventListener('contextoverflow', this.#onoverflow);
  }

  /** Answers. Calls of a session are answered one after another; one that fails or is aborted leaves nothing behind. */
  async prompt(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<string> {
    let text = '';
    for await (const piece of this.#answer(input, options)) text += piece;
    return text;
  }

  /** As {@link prompt}, piece by piece; cancelling the stream aborts it. */
  promptStreaming(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): ReadableStream<string> {
    const abort = new AbortController();
    const signal = AbortSignal.any(options.signal ? [options.signal, abort.signal] : [abort.signal]);
    const pieces = this.#answer(input, { ...options, signal });
    // Begun now, not when it is read: its turn is that of the call.
    let first: ReturnType<typeof pieces.next> | undefined = pieces.next();
    first.catch(() => undefined);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await (first ?? pieces.next());
        first = undefined;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        abort.abort(reason);
        // Where it waits for a reader, nothing else ends it.
        await pieces.return(undefined).catch(() => undefined);
      },
    });
  }

  /** Adds messages and computes them, so that the next prompt starts warm. */
  append(input: LanguageModelPrompt, options: { signal?: AbortSignal } = {}): Promise<undefined> {
    return this.#inTurn(options.signal, async (signal) => {
      const messages = await this.#fit(toMessages(input, this.#usage === 0));
      await warm(this.#engine, messages, signal);
      signal.throwIfAborted();
      this.#keep(messages, await countTokens(this.#engine, messages));
      return undefined;
    });
  }

  /** Tokens that a prompt would add. */
  async measureContextUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
    toConstraint(options);
    this.#check(options.signal);
    const messages = [...this.#messages, ...toMessages(input, this.#usage === 0)];
    const tokens = await countTokens(this.#engine, messages);
    this.#check(options.signal);
    return Math.max(0, tokens - this.#usage);
  }

  /** Another session with the same history. It costs nothing: the engine computes what both have in common once. */
  clone(options: { signal?: AbortSignal } = {}): Promise<LanguageModelSession> {
    return this.#inTurn(options.signal, async () => {
      return new LanguageModelSession(this.#engine, this.#sampling, this.#messages, this.#usage);
    });
  }

  /** Ends what is under way with `AbortError`, and every later call. The engine stays loaded: it is the page's. */
  destroy(): void {
    this.#end.abort(new DOMException('the session was destroyed', 'AbortError'));
  }

  async *#answer(input: LanguageModelPrompt, options: LanguageModelPromptOptions): AsyncGenerator<string, undefined> {
    // Checked at once, not when its turn comes.
    const constraint = toConstraint(options);
    this.#check(options.signal);
    let release: () => void = () => undefined;
    const before = this.#turn;
    this.#turn = new Promise<void>((resolve) => {
      release = resolve;
    });
    const signal = this.#signal(options.signal);
    try {
      await unlessAborted(before, signal);
      const messages = await this.#fit(toMessages(input, this.#usage === 0));
      const { temperature, topK } = this.#sampling;
      const top_k = topK >= this.#engine.info.vocabSize ? 0 : topK;
      const params: ChatCompletionCreateParams = { messages, temperature, top_k, ...constraint };
      const create = this.#engine.chat.completions;
      const stream_options = { include_usage: true };
      const stream = await create.create({ ...params, stream: true, stream_options }, { signal });
      let answer = '';
      let usage = 0;
      for await (const { choices, usage: total } of stream) {
        const piece = choices[0]?.delta.content ?? '';
        answer += piece;
        usage = total?.total_tokens ?? usage;
        if (piece !== '') yield piece;
      }
      this.#keep([...messages, { role: 'assistant', content: answer }], usage);
    } catch (error) {
      throw toException(error, signal);
    } finally {
      // Whoever comes next waits also for who was before an aborted one.
      void before.then(release);
    }
  }

  /** The conversation with what comes now; the oldest turns are left out where it does not fit otherwise. */
  async #fit(added: readonly ChatMessage[]): Promise<ChatMessage[]> {
    const all = [...this.#messages, ...added];
    try {
      const { messages, cut } = await this.#budget.fit(all);
      if (cut !== null) this.dispatchEvent(new Event('contextoverflow'));
      return messages;
    } catch (error) {
      if (!(error instanceof PagewiseError) || error.code !== 'context_too_long') throw error;
      throw quotaExceeded(await countTokens(this.#engine, all), this.contextWindow);
    }
  }

  #keep(messages: readonly ChatMessage[], usage: number): void {
    this.#messages = messages;
    this.#usage = usage;
  }

  async #inTurn<T>(given: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#check(given);
    const signal = this.#signal(given);
    const before = this.#turn;
    const done = unlessAborted(before, signal).then(() => work(signal));
    this.#turn = Promise.all([before, done.catch(() => undefined)]);
    try {
      return await done;
    } catch (error) {
      throw toException(error, signal);
    }
  }

  #signal(given: AbortSignal | undefined): AbortSignal {
    return given === undefined ? this.#end.signal : AbortSignal.any([given, this.#end.signal]);
  }

  #check(signal: AbortSignal | undefined): void {
    this.#end.signal.throwIfAborted();
    signal?.throwIfAborted();
  }
}

/** Computes a beginning. Templates that want a question first refuse it; then it is computed with the first prompt. */
export async function warm(engine: Engine, messages: readonly ChatMessage[], signal: AbortSignal): Promise<void> {
  try {
    await engine.cache.warm(messages, { signal });
  } catch (error) {
    if (!(error instanceof PagewiseError) || error.code !== 'bad_request') throw error;
  }
}
