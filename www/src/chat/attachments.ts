/** Text files that go with a message: read here, put into it as fenced text under their names. */
import type { Attachment } from './records';

/** Longest file. A context of 4,096 tokens is about 16 kB of English; this leaves room for larger ones. */
export const MAX_FILE_BYTES = 256 * 1024;
/** Most files of one message. */
export const MAX_FILES = 8;

/** How the ids of notices about files that were not attached begin: they concern the message that is being written. */
export const FILE_NOTICE = 'file ';

/** Why a file was not attached. */
export type AttachmentProblem = 'too_large' | 'not_text' | 'too_many' | 'unreadable';

/** A file's text, or why not. */
export async function readAttachment(file: File): Promise<Attachment | AttachmentProblem> {
  if (file.size > MAX_FILE_BYTES) return 'too_large';
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    // No text has this byte; UTF-16 and almost every binary format do.
    if (bytes.includes(0)) return 'not_text';
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return { name: file.name, text: text.replace(/\r\n?/g, '\n'), bytes: file.size };
  } catch (error) {
    return error instanceof TypeError ? 'not_text' : 'unreadable';
  }
}

/** A message as it is sent: its files first, in the order they were attached, then what was asked about them. */
export function withAttachments(text: string, attachments: readonly Attachment[]): string {
  return [...attachments.map(fenced), text].filter((part) => part !== '').join('\n\n');
}

function fenced({ name, text }: Attachment): string {
  // Longer than any fence inside.
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const label = name.replace(/[\r\n`]/g, ' ');
  return `${fence}${label}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}
