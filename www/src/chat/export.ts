/** Conversations as files: JSON with everything, Markdown with the branch that is shown. */
import { withSources } from '../documents/source';
import { withAttachments } from './attachments';
import type { ConversationRecord, MessageRecord, PromptRecord } from './records';
import type { WholeConversation } from './store';
import { pathTo } from './tree';

/** Written into every JSON file; another version is another shape. */
export const FORMAT = 'pagewise-chats';
export const VERSION = 1;

/** A conversation in a JSON file: the record and its messages in one. */
export interface ExportedConversation extends Omit<ConversationRecord, 'id'> {
  readonly messages: readonly Omit<MessageRecord, 'conversation'>[];
}

export interface ExportedChats {
  readonly format: typeof FORMAT;
  readonly version: typeof VERSION;
  readonly exported: string;
  readonly conversations: readonly ExportedConversation[];
  readonly prompts: readonly PromptRecord[];
}

/** Everything of some conversations, all branches, as JSON. */
export function toJson(
  conversations: readonly WholeConversation[],
  prompts: readonly PromptRecord[],
  now: Date,
): string {
  const file: ExportedChats = {
    format: FORMAT,
    version: VERSION,
    exported: now.toISOString(),
    conversations: conversations.map(({ conversation: { id: _, ...record }, messages }) => ({
      ...record,
      messages: messages.map(({ conversation: __, ...message }) => message),
    })),
    prompts,
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** Begins each message of a Markdown file; a reader does not see it, and an import needs it. */
export const MARK = /^<!-- pagewise:(system|user|assistant) -->$/;

/** The branch that is shown, to be read by people and by `fromMarkdown`. */
export function toMarkdown(
  { conversation, messages }: WholeConversation,
  names: { user: string; assistant: string; system: string },
): string {
  const nodes = new Map(messages.map((message) => [message.id, message]));
  const part = (role: keyof typeof names, text: string): string =>
    `<!-- pagewise:${role} -->\n\n## ${names[role]}\n\n${escapeMarks(text.trim())}\n`;
  const parts = [`# ${conversation.title.replace(/\s+/g, ' ')}\n`];
  if (conversation.system.text.trim() !== '') parts.push(part('system', conversation.system.text));
  for (const { role, text, attachments, sources = [] } of pathTo(nodes, conversation.leaf)) {
    parts.push(part(role, withSources(withAttachments(text, attachments), sources)));
  }
  return parts.join('\n');
}

/** A line of a message that looks like a mark gets one backslash more. */
function escapeMarks(text: string): string {
  return text.replace(/^(\\*<!-- pagewise:\w+ -->)$/gm, '\\$1');
}

/** The reverse of `escapeMarks`. */
export function unescapeMarks(text: string): string {
  return text.replace(/^\\(\\*<!-- pagewise:\w+ -->)$/gm, '$1');
}

/** A file's name from a title: letters and digits of any language. */
export function fileNameFor(title: string, ending: string): string {
  const name = title
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
  return `${name || 'conversation'}.${ending}`;
}
