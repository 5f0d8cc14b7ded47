/**
 * The conversation budget: keeps a growing conversation within a context, and its beginning equal from request to request,
 * so that a prefix cache goes on hitting.
 *
 * Dropping the oldest turn with every request would change the prompt right behind the system prompt each time, and all of
 * it would be computed again each time. A budget cuts rarely and deep instead: only when the conversation no longer fits,
 * and then down to a part of the space. Between two cuts a prompt only grows at its end.
 */

import { PagewiseError } from './errors.js';
import { bad, inRange, isObject, show } from './fields.js';
import type { ChatRequestMessage } from './openai.js';
import { checkOptions, type OptionKinds } from './options.js';

/** What to do when a conversation no longer fits; see {@link BudgetOptions.overflow}. */
export type OverflowPolicy = 'error' | 'drop_oldest_turns' | 'summarize';

/** What stands for turns that were cut. */
export interface ConversationSummary {
  /** What was said. */
  conversation_summary: string;
  /** What is known of the user. */
  user_profile: string;
  /** What is being done, and how far it is. */
  task_state: string;
}

/** What a summary is to be made of. */
export interface SummaryRequest {
  /** The messages that are about to be cut, oldest first. */
  messages: readonly ChatRequestMessage[];
  /** The summary of what was cut before; the new one has to cover it too. */
  previous: ConversationSummary | null;
}

/** How a {@link ConversationBudget} works. */
export interface BudgetOptions {
  /** Tokens of the model's context. */
  contextTokens: number;
  /** Of those, tokens kept free for the answer. */
  answerTokens: number;
  /** Counts a prompt's tokens, what the template adds included. */
  countTokens: (messages: readonly ChatRequestMessage[]) => number | Promise<number>;
  /**
   * When a conversation no longer fits: `error` (default) rejects with `context_too_long`; `drop_oldest_turns` leaves them
   * out; `summarize` puts a summary in their place.
   */
  overflow?: OverflowPolicy;
  /** Turns at the end that are never cut; default 2. A turn is a user message and all that follows up to the next. */
  keepTurns?: number;
  /** Part of the space that is still taken after a cut, over 0 to 1, default 0.5: smaller means rarer cuts. */
  cutTo?: number;
  /** Makes summaries; needed by `summarize`. */
  summarize?: (request: SummaryRequest) => Promise<ConversationSummary>;
  /** Tokens that a summary's three texts may have together; default a tenth of the space. A cut leaves room for them. */
  summaryTokens?: number;
  /**
   * A summary as messages. Default: a turn of its own, because templates differ in whether they take a second system
   * message, but all take turns; and the system prompt stays as it is.
   */
  renderSummary?: (summary: ConversationSummary) => readonly ChatRequestMessage[];
  /** Whether the cache keeps generated answers too, as Pagewise's does; default true. */
  cachesAnswers?: boolean;
}

/** What one call of {@link ConversationBudget.fit} cut. */
export interface Cut {
  /** How. */
  policy: Exclude<OverflowPolicy, 'error'>;
  /** The messages that are no longer in the prompt, oldest first. */
  messages: ChatRequestMessage[];
  /** How many turns those are. */
  turns: number;
  /** Tokens of the prompt before the cut. */
  tokensBefore: number;
}

/** A prompt that fits. */
export interface FittedPrompt {
  /** What to send. */
  messages: ChatRequestMessage[];
  /** Its tokens. */
  promptTokens: number;
  /** Tokens that it may have. */
  allowedTokens: number;
  /** Tokens of the messages at its front that are the last prompt's (and its answer): they will hit. */
  reusedTokens: number;
  /** `reusedTokens` as a part of `promptTokens`. */
  reusedFraction: number;
  /** What this call cut; null if nothing. */
  cut: Cut | null;
  /** Messages of the conversation that are not in the prompt, of all cuts so far. */
  numReplaced: number;
  /** What stands for them, with `summarize`. */
  summary: ConversationSummary | null;
}

const BUDGET_OPTIONS: OptionKinds<BudgetOptions> = {
  contextTokens: 'any',
  answerTokens: 'any',
  countTokens: 'function',
  overflow: 'any',
  keepTurns: 'any',
  cutTo: 'any',
  summarize: 'function',
  summaryTokens: 'any',
  renderSummary: 'function',
  cachesAnswers: 'flag',
};
const OVERFLOWS: readonly unknown[] = ['error', 'drop_oldest_turns', 'summarize'];

/** What was cut so far. */
interface State {
  /** Messages behind the system prompt that are no longer sent. */
  replaced: readonly ChatRequestMessage[];
  summary: ConversationSummary | null;
}

const NOTHING_CUT: State = { replaced: [], summary: null };

const EMPTY_SUMMARY: ConversationSummary = { conversation_summary: '', user_profile: '', task_state: '' };

/** Keeps one conversation within its context. */
export class ConversationBudget {
  readonly #options: Required<Omit<BudgetOptions, 'summarize'>> & Pick<BudgetOptions, 'summarize'>;
  readonly #allowed: number;
  #state = NOTHING_CUT;
  #lastPrompt: readonly ChatRequestMessage[] = [];
  #queue: Promise<unknown> = Promise.resolve();

  /** A budget for one conversation; throws `bad_request` for options that contradict each other. */
  constructor(given: BudgetOptions) {
    if (given === undefined) throw bad('ConversationBudget: options are needed');
    const options = checkOptions('ConversationBudget', given, BUDGET_OPTIONS);
    if (options.countTokens === undefined) throw bad('ConversationBudget: countTokens is needed');
    for (const name of ['contextTokens', 'answerTokens'] as const) {
      inRange(name, options[name], 0, Number.MAX_SAFE_INTEGER);
    }
    this.#allowed = options.contextTokens - options.answerTokens;
    this.#options = {
      overflow: 'error',
      keepTurns: 2,
      cutTo: 0.5,
      summaryTokens: Math.floor(this.#allowed / 10),
      renderSummary: summaryTurn,
      cachesAnswers: true,
      ...options,
    };
    const { keepTurns, cutTo, overflow, summarize, summaryTokens } = this.#options;
    if (!(this.#allowed > 0)) {
      throw bad(`contextTokens ${options.contextTokens} leave nothing beside answerTokens ${options.answerTokens}`);
    }
    if (!Number.isInteger(keepTurns) || keepTurns < 1) throw bad(`keepTurns is ${keepTurns}, at least 1 is needed`);
    if (!(cutTo > 0 && cutTo <= 1)) throw bad(`cutTo is ${cutTo}, over 0 to 1 is allowed`);
    if (!(summaryTokens >= 0)) throw bad(`summaryTokens is ${summaryTokens}`);
    if (!OVERFLOWS.includes(overflow)) {
      throw bad(`overflow: ${OVERFLOWS.map(show).join(', ')} are supported, ${show(overflow)} given`);
    }
    if (overflow === 'summarize' && !summarize) throw bad('overflow summarize needs summarize');
  }

  /**
   * The prompt for a conversation, which is always given whole: system prompt, all turns so far, the new user message.
   *
   * Rejects with `context_too_long` where it does not fit and may not be cut, or does not fit even when it is; with what
   * `summarize` rejects with; and then nothing is changed. Calls are answered one after another.
   */
  fit(conversation: readonly ChatRequestMessage[]): Promise<FittedPrompt> {
    if (!Array.isArray(conversation) || !Array.from<unknown>(conversation).every(isObject)) {
      return Promise.reject(bad(`fit: a list of messages is needed, ${show(conversation)} given`));
    }
    const result = this.#queue.then(() => this.#fit([...conversation]));
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #fit(conversation: ChatRequestMessage[]): Promise<FittedPrompt> {
    const numSystem = conversation.findIndex((message) => !isSystem(message));
    const system = conversation.slice(0, numSystem < 0 ? conversation.length : numSystem);
    const rest = conversation.slice(system.length);
    // Whoever edits what was cut begins anew: a summary of what is no longer so would be wrong.
    const isContinued = commonLength(this.#state.replaced, rest) === this.#state.replaced.length;
    let state = isContinued ? this.#state : NOTHING_CUT;
    let messages = this.#assemble(system, rest, state);
    let promptTokens = await this.#count(messages);
    let cut: Cut | null = null;
    if (promptTokens > this.#allowed) {
      const { overflow } = this.#options;
      if (overflow === 'error') throw this.#tooLong('the conversation', promptTokens);
      const end = await this.#cutEnd(system, rest, state);
      const dropped = rest.slice(state.replaced.length, end);
      const turns = turnStarts(dropped).length;
      cut = { policy: overflow, messages: dropped, turns, tokensBefore: promptTokens };
      const summary = overflow === 'summarize' ? await this.#summarize(dropped, state.summary) : null;
      state = { replaced: rest.slice(0, end), summary };
      messages = this.#assemble(system, rest, state);
      promptTokens = await this.#count(messages);
      if (promptTokens > this.#allowed) throw this.#tooLong('with its summary, the conversation', promptTokens);
    }
    const reusedTokens = await this.#reusedTokens(messages, promptTokens);
    this.#state = state;
    this.#lastPrompt = messages;
    const reusedFraction = promptTokens > 0 ? reusedTokens / promptTokens : 0;
    const [allowedTokens, numReplaced] = [this.#allowed, state.replaced.length];
    const { summary } = state;
    return { messages, promptTokens, allowedTokens, reusedTokens, reusedFraction, cut, numReplaced, summary };
  }

  #assemble(
    system: ChatRequestMessage[],
    rest: ChatRequestMessage[],
    { replaced, summary }: State,
  ): ChatRequestMessage[] {
    const stand = summary ? this.#options.renderSummary(summary) : [];
    return [...system, ...stand, ...rest.slice(replaced.length)];
  }

  /** Where the cut ends: the first turn that leaves no more than `cutTo` of the space taken, of those that may be cut. */
  async #cutEnd(system: ChatRequestMessage[], rest: ChatRequestMessage[], state: State): Promise<number> {
    const { keepTurns, cutTo, overflow, summaryTokens } = this.#options;
    const frame = overflow === 'summarize' ? this.#options.renderSummary(EMPTY_SUMMARY) : [];
    const reserved = overflow === 'summarize' ? summaryTokens : 0;
    const starts = turnStarts(rest);
    const ends = starts.slice(0, Math.max(0, starts.length - keepTurns + 1)).filter((at) => at > state.replaced.length);
    let tokens = 0;
    for (const end of ends) {
      tokens = (await this.#count([...system, ...frame, ...rest.slice(end)])) + reserved;
      if (tokens <= this.#allowed * cutTo) return end;
    }
    const last = ends.at(-1);
    if (last !== undefined && tokens <= this.#allowed) return last;
    const what = `the system prompt with the last ${keepTurns} turns`;
    throw this.#tooLong(what, last === undefined ? await this.#count(this.#assemble(system, rest, state)) : tokens);
  }

  async #summarize(messages: ChatRequestMessage[], previous: ConversationSummary | null): Promise<ConversationSummary> {
    const summary = await this.#options.summarize?.({ messages, previous });
    for (const key of ['conversation_summary', 'user_profile', 'task_state'] as const) {
      if (typeof summary?.[key] !== 'string') throw bad(`summarize gave no text as ${key}`);
    }
    return summary as ConversationSummary;
  }

  async #reusedTokens(messages: ChatRequestMessage[], promptTokens: number): Promise<number> {
    let length = commonLength(this.#lastPrompt, messages);
    const isWhole = length > 0 && length === this.#lastPrompt.length;
    if (isWhole && this.#options.cachesAnswers && messages[length]?.role === 'assistant') length += 1;
    return length === 0 ? 0 : Math.min(promptTokens, await this.#count(messages.slice(0, length)));
  }

  async #count(messages: readonly ChatRequestMessage[]): Promise<number> {
    const tokens = await this.#options.countTokens(messages);
    if (!(tokens >= 0)) throw bad(`countTokens gave ${tokens}`);
    return tokens;
  }

  #tooLong(what: string, asked: number): PagewiseError {
    const allowed = `${this.#allowed} allowed beside ${this.#options.answerTokens} for the answer`;
    return new PagewiseError('context_too_long', `context too long: ${what} takes ${asked} tokens, ${allowed}`);
  }
}

/** A summary as a turn of its own. */
function summaryTurn(summary: ConversationSummary): ChatRequestMessage[] {
  const part = (key: keyof ConversationSummary): string => `<${key}>\n${summary[key]}\n</${key}>`;
  const parts = [part('conversation_summary'), part('user_profile'), part('task_state')];
  const content = `Earlier messages of this conversation were replaced by this summary.\n\n${parts.join('\n')}`;
  return [
    { role: 'user', content },
    { role: 'assistant', content: 'I will go on from there.' },
  ];
}

const isSystem = ({ role }: ChatRequestMessage): boolean => role === 'system' || role === 'developer';

/** Indices at which turns begin; what is before the first user message belongs to the first turn. */
function turnStarts(messages: readonly ChatRequestMessage[]): number[] {
  const starts = messages.flatMap(({ role }, index) => (role === 'user' && index > 0 ? [index] : []));
  return messages.length > 0 ? [0, ...starts] : [];
}

/** Messages that two lists have in common at their fronts. */
function commonLength(a: readonly ChatRequestMessage[], b: readonly ChatRequestMessage[]): number {
  const isSame = (index: number): boolean => JSON.stringify(a[index]) === JSON.stringify(b[index]);
  let length = 0;
  while (length < a.length && length < b.length && isSame(length)) length += 1;
  return length;
}
