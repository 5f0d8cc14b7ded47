/** Takes files into the next message, and says which it did not take. */
import { t as source } from '../documents/source-text';
import { formatBytes } from '../i18n/format';
import { type AttachmentProblem, FILE_NOTICE, MAX_FILE_BYTES, MAX_FILES, readAttachment } from './attachments';
import type { Chat } from './chat';
import { t } from './text';

export async function attachFiles(chat: Chat, files: readonly File[]): Promise<void> {
  const pdfs: File[] = [];
  for (const file of files) {
    if (isPdf(file)) {
      pdfs.push(file);
      continue;
    }
    const read = chat.files.peek().length >= MAX_FILES ? 'too_many' : await readAttachment(file);
    if (typeof read === 'string') {
      const run = (): void => void addDocuments(chat, [file]);
      chat.session.notices.show({
        id: FILE_NOTICE + file.name,
        text: () => problemText(read, file.name),
        // What is too much for a message can be searched.
        ...(read === 'too_large' ? { action: { label: () => source('addInstead'), run } } : {}),
      });
      continue;
    }
    // The same name again is a newer version of the file.
    chat.files.value = [...chat.files.peek().filter(({ name }) => name !== read.name), read];
  }
  if (pdfs.length > 0) void addDocuments(chat, pdfs);
  else chat.composerFocus.value += 1;
}

/** A PDF file is no text that could go with a message as it is: it becomes a document. */
function isPdf({ name, type }: File): boolean {
  return type === 'application/pdf' || /\.pdf$/i.test(name);
}

async function addDocuments(chat: Chat, files: readonly File[]): Promise<void> {
  const documents = await import('../documents/chat');
  await documents.addDocuments(chat, files);
}

function problemText(problem: AttachmentProblem, name: string): string {
  switch (problem) {
    case 'too_large':
      return t('fileTooLarge', { name, limit: formatBytes(MAX_FILE_BYTES) });
    case 'not_text':
      return t('fileNotText', { name });
    case 'too_many':
      return t('fileTooMany', { limit: MAX_FILES });
    case 'unreadable':
      return t('fileUnreadable', { name });
  }
}
