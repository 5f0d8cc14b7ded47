/** Takes files into the next message, and says which it did not take. */
import { formatBytes } from '../i18n/format';
import { type AttachmentProblem, MAX_FILE_BYTES, MAX_FILES, readAttachment } from './attachments';
import type { Chat } from './chat';
import { t } from './text';

export async function attachFiles(chat: Chat, files: readonly File[]): Promise<void> {
  for (const file of files) {
    const read = chat.files.peek().length >= MAX_FILES ? 'too_many' : await readAttachment(file);
    if (typeof read === 'string') {
      chat.session.notices.show({ id: `file ${file.name}`, text: () => problemText(read, file.name) });
      continue;
    }
    // The same name again is a newer version of the file.
    chat.files.value = [...chat.files.peek().filter(({ name }) => name !== read.name), read];
  }
  chat.composerFocus.value += 1;
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
