/** What is stored of conversations and prompts. Everything here is plain data: IndexedDB, files and other tabs get the same. */
import type { DocumentSettings, SourceRecord } from '../documents/source';
import type { AnswerStats } from '../state/engine';
import type { Problem } from '../state/problem';

/** A text file that goes with a message. */
export interface Attachment {
  readonly name: string;
  readonly text: string;
  readonly bytes: number;
}

export type AnswerStatus =
  /** For the model to load, or for the first words. */
  | 'waiting'
  | 'streaming'
  | 'done'
  /** By the visitor; what was written stays. */
  | 'stopped'
  /** Its page was closed or crashed; what was saved of it stays. */
  | 'interrupted'
  | 'failed';

/** One message; its parent is the message before it, so that messages with the same parent are branches. */
export interface MessageRecord {
  readonly id: string;
  readonly conversation: string;
  readonly parent: string | null;
  readonly role: 'user' | 'assistant';
  readonly created: number;
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** Of a question always `done`. */
  readonly status: AnswerStatus;
  readonly stats: AnswerStats | null;
  readonly problem: Problem | null;
  /** Of a question: passages that go with it. Absent until they were looked for, and where no documents are used. */
  readonly sources?: readonly SourceRecord[] | undefined;
}

/** The system prompt of a conversation: a text of its own, or a version of one of the library. */
export interface SystemPrompt {
  readonly text: string;
  readonly name: string | null;
  readonly version: number | null;
}

export const NO_SYSTEM: SystemPrompt = { text: '', name: null, version: null };

/** What happens when a conversation no longer fits into the context. */
export interface BudgetSettings {
  readonly overflow: 'error' | 'drop_oldest_turns' | 'summarize';
  /** Turns at the end that always stay. */
  readonly keepTurns: number;
  /** Part of the space that is taken after a cut. */
  readonly cutTo: number;
}

export const DEFAULT_BUDGET: BudgetSettings = { overflow: 'error', keepTurns: 2, cutTo: 0.5 };

/** What stands for turns that were cut; may be edited. */
export interface SummaryRecord {
  readonly conversation: string;
  readonly profile: string;
  readonly task: string;
  /** Id of the last message it stands for. */
  readonly upTo: string;
}

export interface ConversationRecord {
  readonly id: string;
  readonly title: string;
  /** Whether the visitor gave it its title; else it is the first question's beginning. */
  readonly isTitled: boolean;
  readonly created: number;
  readonly updated: number;
  /** The last message of the branch that is shown. */
  readonly leaf: string | null;
  readonly system: SystemPrompt;
  readonly budget: BudgetSettings;
  readonly summary: SummaryRecord | null;
  /** Absent where it never used any. */
  readonly documents?: DocumentSettings;
}

/** One version of a prompt in the library. */
export interface PromptVersion {
  readonly version: number;
  readonly text: string;
  readonly created: number;
}

/** A prompt with all its versions, the newest last. */
export interface PromptRecord {
  readonly name: string;
  readonly versions: readonly PromptVersion[];
}

/** An id that no other tab makes too. */
export function newId(): string {
  return crypto.randomUUID();
}

/** A conversation without messages. */
export function newConversation(system: SystemPrompt, now: number = Date.now()): ConversationRecord {
  return {
    id: newId(),
    title: '',
    isTitled: false,
    created: now,
    updated: now,
    leaf: null,
    system,
    budget: DEFAULT_BUDGET,
    summary: null,
  };
}

const TITLE_LENGTH = 60;

/** A title from the first question: its first line, cut at a word. */
export function titleFrom(question: string): string {
  const line = question.trim().split('\n', 1)[0]?.replace(/\s+/g, ' ') ?? '';
  if (line.length <= TITLE_LENGTH) return line;
  const cut = line.slice(0, TITLE_LENGTH);
  const space = cut.lastIndexOf(' ');
  return `${space > TITLE_LENGTH / 2 ? cut.slice(0, space) : cut}…`;
}
