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
import type { ChatRequestMessage } from './message-types.js';
import type { ChatCompletionCreateParams, ChatMessage } from './openai.js';
import { countTokens, warm } from './prompt-context.js';
import {
  type LanguageModelPrompt,
  type LanguageModelPromptOptions,
  quotaExceeded,
  toConstraint,
  toException,
  toMessages,
} from './prompt-input.js';
import { type SessionTools, StreamedCalls } from './prompt-tools.js';
import type { ToolCall } from './tool-types.js';

/** How a session draws its answers. */
export interface Sampling {
  temperature: number;
  topK: number;
  samplingMode: string;
}

/** What a session is made of. */
export interface SessionParts {
  engine: Engine;
  sampling: Sampling;
  /** What the model may call; undefined if nothing. */
  tools: SessionTools | undefined;
  messages: readonly ChatRequestMessage[];
  /** Tokens of the messages. */
  usage: number;
}

/** A part of the context that is kept free for the answer. */
const ANSWER_PART = 1 / 8;
/** A model that still calls after so many answers to one prompt goes round in circles. */
const MAX_ROUNDS = 16;

/** A session; made by `LanguageModel.create()` and {@link LanguageModelSession.clone}. */
export class LanguageModelSession extends EventTarget {
  readonly #engine: Engine;
  readonly #sampling: Sampling;
  readonly #tools: SessionTools | undefined;
  readonly #budget: ConversationBudget;
  readonly #end = new AbortController();
  #messages: readonly ChatRequestMessage[];
  #usage: number;
  #turn: Promise<unknown> = Promise.resolve();
  #onoverflow: ((event: Event) => void) | null = null;

  /** @internal */
  constructor({ engine, sampling, tools, messages, usage }: SessionParts) {
    super();
    this.#engine = engine;
    this.#sampling = sampling;
    this.#tools = tools;
    this.#messages = messages;
    this.#usage = usage;
    const contextTokens = engine.info.contextLength;
    this.#budget = new ConversationBudget({
      contextTokens,
      answerTokens: Math.floor(contextTokens * ANSWER_PART),
      countTokens: (given) => countTokens(engine, given, tools),
      overflow: 'drop_oldest_turns',
      keepTurns: 1,
      // Of answers with calls no template has to render what ends with them.
      cachesAnswers: false,
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

  /** Answers, after whatever tools the model wants called. Calls of a session are answered one after another; one that fails or is aborted leaves nothing behind. */
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
      const messages = await this.#fit([...this.#messages, ...this.#toMessages(input)]);
      await warm(this.#engine, messages, this.#tools, signal);
      signal.throwIfAborted();
      this.#keep(messages, await this.#count(messages));
      return undefined;
    });
  }

  /** Tokens that a prompt would add. */
  async measureContextUsage(input: LanguageModelPrompt, options: LanguageModelPromptOptions = {}): Promise<number> {
    toConstraint(options);
    this.#check(options.signal);
    const tokens = await this.#count([...this.#messages, ...this.#toMessages(input)]);
    this.#check(options.signal);
    return Math.max(0, tokens - this.#usage);
  }

  /** Another session with the same history. It costs nothing: the engine computes what both have in common once. */
  clone(options: { signal?: AbortSignal } = {}): Promise<LanguageModelSession> {
    return this.#inTurn(options.signal, async () => {
      const [engine, sampling, tools] = [this.#engine, this.#sampling, this.#tools];
      return new LanguageModelSession({ engine, sampling, tools, messages: this.#messages, usage: this.#usage });
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
      yield* this.#rounds(await this.#fit([...this.#messages, ...this.#toMessages(input)]), constraint, signal);
    } catch (error) {
      throw toException(error, signal);
    } finally {
      // Whoever comes next waits also for who was before an aborted one.
      void before.then(release);
    }
  }

  /** Answers until the model calls nothing more. */
  async *#rounds(
    first: ChatRequestMessage[],
    constraint: Partial<ChatCompletionCreateParams>,
    signal: AbortSignal,
  ): AsyncGenerator<string, undefined> {
    let messages = first;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const { text: content, calls, usage } = yield* this.#say(messages, constraint, signal);
      if (calls.length === 0 || this.#tools === undefined) {
        this.#keep([...messages, { role: 'assistant', content }], usage);
        return undefined;
      }
      const results = await unlessAborted(this.#tools.run(calls), signal);
      messages = await this.#fit([...messages, { role: 'assistant', content, tool_calls: calls }, ...results]);
    }
    throw new DOMException(`the model still calls tools after ${MAX_ROUNDS} rounds`, 'OperationError');
  }

  /** One answer of the model's. */
  async *#say(
    messages: readonly ChatRequestMessage[],
    constraint: Partial<ChatCompletionCreateParams>,
    signal: AbortSignal,
  ): AsyncGenerator<string, { text: string; calls: ToolCall[]; usage: number }> {
    const { temperature, topK } = this.#sampling;
    const top_k = topK >= this.#engine.info.vocabSize ? 0 : topK;
    const tools = this.#tools === undefined ? {} : { tools: this.#tools.list };
    const params: ChatCompletionCreateParams = { messages, temperature, top_k, ...tools, ...constraint };
    const { completions } = this.#engine.chat;
    const stream_options = { include_usage: true };
    const stream = await completions.create({ ...params, stream: true, stream_options }, { signal });
    const calls = new StreamedCalls();
    let text = '';
    let usage = 0;
    for await (const chunk of stream) {
      const piece = chunk.choices[0]?.delta.content ?? '';
      text += piece;
      usage = chunk.usage?.total_tokens ?? usage;
      calls.add(chunk);
      if (piece !== '') yield piece;
    }
    return { text, calls: calls.all, usage };
  }

  #toMessages(input: LanguageModelPrompt): ChatMessage[] {
    return toMessages(input, this.#messages.length === 0);
  }

  #count(messages: readonly ChatRequestMessage[]): Promise<number> {
    return countTokens(this.#engine, messages, this.#tools);
  }

  /** The conversation; its oldest turns are left out where it does not fit otherwise. */
  async #fit(all: readonly ChatRequestMessage[]): Promise<ChatRequestMessage[]> {
    try {
      const { messages, cut } = await this.#budget.fit(all);
      if (cut !== null) this.dispatchEvent(new Event('contextoverflow'));
      return messages;
    } catch (error) {
      if (!(error instanceof PagewiseError) || error.code !== 'context_too_long') throw error;
      throw quotaExceeded(await this.#count(all), this.contextWindow);
    }
  }

  #keep(messages: readonly ChatRequestMessage[], usage: number): void {
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
