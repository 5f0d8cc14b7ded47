/**
 * Keeps conversations within the context: rare, deep cuts by the package's ConversationBudget, so that the beginning of what is
 * sent, and with it the cache, stays. Summaries are written by the model itself and may be edited by the visitor.
 */
import { type Signal, signal } from '@preact/signals';
import type { ChatMessage, ConversationBudget, ConversationSummary, LoadedModel } from '../state/engine';
import { toProblem } from '../state/problem';
import type { Settings } from '../state/settings';
import type { BudgetSettings, SummaryRecord } from './records';
import type { Thread } from './thread';

/** What the last fit did, for the gauge. */
export interface FitReport {
  readonly promptTokens: number;
  readonly allowedTokens: number;
  /** Messages of the conversation that are not sent. */
  readonly numReplaced: number;
  /** Turns that were cut for this request. */
  readonly cutTurns: number;
}

interface Entry {
  readonly budget: ConversationBudget;
  readonly model: LoadedModel;
  readonly settings: BudgetSettings;
  readonly answerTokens: number;
}

/** Most of the context that is kept for the answer, however long it may be. */
const ANSWER_SHARE = 0.25;
const PARTS = ['conversation_summary', 'user_profile', 'task_state'] as const;

/** What the model is asked for; in English, as are its training data, and never shown. */
const ASK: Readonly<Record<(typeof PARTS)[number], string>> = {
  conversation_summary:
    'Summarise our conversation so far in a few short sentences. Keep names, numbers and decisions.',
  user_profile: 'List in a few words what you know about me from this conversation. If nothing, say: unknown.',
  task_state: 'Say in one or two sentences what we are working on and what is still to be done.',
};

export class Budgets {
  /** By conversation. */
  readonly reports: Signal<ReadonlyMap<string, FitReport>> = signal(new Map());
  private readonly entries = new Map<string, Entry>();

  /** The messages to send for a conversation: all of them, or fewer as its budget says. */
  async fit(
    thread: Thread,
    messages: readonly ChatMessage[],
    model: LoadedModel,
    settings: Settings,
    abort: AbortSignal,
  ): Promise<readonly ChatMessage[]> {
    const { budget: wanted } = thread.record.peek();
    // The engine itself refuses what does not fit, and lets an answer use whatever is left.
    if (wanted.overflow === 'error') return messages;
    const { budget } = this.entry(thread, model, wanted, settings.maxTokens, abort);
    const fitted = await budget.fit(messages);
    const report: FitReport = {
      promptTokens: fitted.promptTokens,
      allowedTokens: fitted.allowedTokens,
      numReplaced: fitted.numReplaced,
      cutTurns: fitted.cut?.turns ?? 0,
    };
    this.reports.value = new Map([...this.reports.peek(), [thread.id, report]]);
    return fitted.messages as readonly ChatMessage[];
  }

  private entry(
    thread: Thread,
    model: LoadedModel,
    settings: BudgetSettings,
    maxTokens: number,
    abort: AbortSignal,
  ): Entry {
    const { contextLength } = model.info;
    const answerTokens = Math.max(1, Math.min(maxTokens, Math.floor(contextLength * ANSWER_SHARE)));
    const known = this.entries.get(thread.id);
    const isSame = known?.model === model && known.answerTokens === answerTokens && known.settings === settings;
    if (known && isSame) return known;
    const budget = model.createBudget({
      contextTokens: contextLength,
      answerTokens,
      overflow: settings.overflow,
      keepTurns: settings.keepTurns,
      cutTo: settings.cutTo,
      summarize: (request) => summarize(thread, model, request, abort),
      // What the visitor wrote in a summary's place counts.
      renderSummary: (summary) => renderSummary(thread.record.peek().summary ?? fromSummary(summary, '')),
    });
    const entry: Entry = { budget, model, settings, answerTokens };
    this.entries.set(thread.id, entry);
    return entry;
  }
}

function fromSummary(summary: ConversationSummary, upTo: string): SummaryRecord {
  return {
    conversation: summary.conversation_summary,
    profile: summary.user_profile,
    task: summary.task_state,
    upTo,
  };
}

/** Names the last of some messages by what it says, so that a reload finds the summary that stands for them. */
function nameOf(messages: readonly unknown[]): string {
  return `${messages.length} ${JSON.stringify(messages.at(-1) ?? null)}`;
}

async function summarize(
  thread: Thread,
  model: LoadedModel,
  { messages, previous }: { messages: readonly unknown[]; previous: ConversationSummary | null },
  abort: AbortSignal,
): Promise<ConversationSummary> {
  const upTo = nameOf(messages);
  const stored = thread.record.peek().summary;
  // The same turns were summed up before, in an earlier visit.
  if (stored?.upTo === upTo) return toSummary(stored);
  const before = previous ? renderSummary(stored ?? fromSummary(previous, '')) : [];
  const result: Record<string, string> = {};
  // One after the other: all three begin with the same messages, which the cache computes once.
  for (const part of PARTS) {
    result[part] = await askAbout(model, [...before, ...(messages as readonly ChatMessage[])], ASK[part], abort);
  }
  const summary = result as unknown as ConversationSummary;
  thread.patch({ summary: fromSummary(summary, upTo) });
  return summary;
}

/** Asks about messages; where they do not fit with the question, about the later half of them, and so on. */
async function askAbout(
  model: LoadedModel,
  messages: readonly ChatMessage[],
  question: string,
  abort: AbortSignal,
): Promise<string> {
  try {
    return await model.complete([...messages, { role: 'user', content: question }], abort);
  } catch (error) {
    if (toProblem(error).code !== 'context_too_long' || messages.length < 2) throw error;
    const half = messages.findIndex(({ role }, index) => role === 'user' && index >= messages.length / 2);
    return askAbout(model, half < 0 ? [] : messages.slice(half), question, abort);
  }
}

function toSummary({ conversation, profile, task }: SummaryRecord): ConversationSummary {
  return { conversation_summary: conversation, user_profile: profile, task_state: task };
}

/** A summary as a turn of its own: templates differ in whether they take a second system message, but all take turns. */
function renderSummary({ conversation, profile, task }: SummaryRecord): ChatMessage[] {
  const parts = [
    `<conversation_summary>\n${conversation}\n</conversation_summary>`,
    `<user_profile>\n${profile}\n</user_profile>`,
    `<task_state>\n${task}\n</task_state>`,
  ];
  return [
    { role: 'user', content: `A summary stands for earlier messages of this conversation.\n\n${parts.join('\n')}` },
    { role: 'assistant', content: 'I will go on from there.' },
  ];
}
