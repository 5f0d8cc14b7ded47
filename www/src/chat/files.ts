/** Exports to files that the browser saves, and imports from files that the visitor chose. */
import { signal } from '@preact/signals';
import type { Chat } from './chat';
import { fileNameFor, toJson, toMarkdown } from './export';
import { fromFile, type Imported, type ImportProblem, MAX_IMPORT_BYTES } from './import';
import { t } from './text';

/** What the last import brought. */
export interface ImportReport {
  readonly numConversations: number;
  readonly numPrompts: number;
  readonly problems: readonly ImportProblem[];
}

export const importReport = signal<ImportReport | null>(null);

/** Hands a text to the browser as a file to save. */
function saveFile(name: string, contents: string, type: string): void {
  const url = URL.createObjectURL(new Blob([contents], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken it once the click is handled.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function exportConversation(chat: Chat, id: string, kind: 'json' | 'markdown'): Promise<void> {
  const whole = await chat.library.get(id);
  if (!whole) return;
  const { title } = whole.conversation;
  if (kind === 'json') saveFile(fileNameFor(title, 'json'), toJson([whole], [], new Date()), 'application/json');
  else {
    const names = { user: t('you'), assistant: t('answer'), system: t('systemPrompt') };
    saveFile(fileNameFor(title, 'md'), toMarkdown(whole, names), 'text/markdown');
  }
}

export async function exportAll(chat: Chat): Promise<void> {
  const { conversations, prompts } = await chat.library.all();
  const now = new Date();
  saveFile(`pagewise-${now.toISOString().slice(0, 10)}.json`, toJson(conversations, prompts, now), 'application/json');
}

export async function importFiles(chat: Chat, files: readonly File[]): Promise<void> {
  const problems: ImportProblem[] = [];
  let [numConversations, numPrompts] = [0, 0];
  for (const file of files) {
    const read = await readFile(file);
    problems.push(...read.problems);
    const notStored = (what: string): void =>
      void problems.push({ code: 'not_stored', place: `${file.name}: ${what}` });
    // Versions come on top of those that are there: nothing is overwritten.
    for (const { name, versions } of read.prompts) {
      const added = await chat.library.addPromptVersions(name, versions).catch(() => false);
      if (added) numPrompts += 1;
      else notStored(name);
    }
    for (const whole of read.conversations) {
      const added = await chat.library.restore([whole]).catch(() => false);
      if (added) numConversations += 1;
      else notStored(whole.conversation.title);
    }
  }
  importReport.value = { numConversations, numPrompts, problems };
  chat.dialog.value = 'import';
}

/** What is in a file, as far as it can be read. */
async function readFile(file: File): Promise<Imported> {
  const nothing = (code: ImportProblem['code']): Imported => {
    return { conversations: [], prompts: [], problems: [{ code, place: file.name }] };
  };
  if (file.size > MAX_IMPORT_BYTES) return nothing('too_large');
  try {
    return fromFile(file.name, await file.text());
  } catch {
    // It was moved or changed since it was chosen.
    return nothing('unreadable');
  }
}
