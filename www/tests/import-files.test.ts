/** Imports of files that cannot be read, and into a browser that keeps nothing or has no room. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Chat } from '../src/chat/chat';
import { importFiles, importReport } from '../src/chat/files';
import { Library } from '../src/chat/library';
import type { WholeConversation } from '../src/chat/store';

const named = (title: string) => ({ title, messages: [{ id: 'a', role: 'user', text: 'x' }] });
const contents = {
  format: 'pagewise-chats',
  version: 1,
  conversations: [named('first'), named('second'), named('third')],
  prompts: [{ name: 'p', versions: [{ version: 1, text: 'x' }] }],
};
const file = new File([JSON.stringify(contents)], 'chats.json');

/** What an import needs of a chat. */
function chatWith(library: object): Chat {
  return { library, dialog: { value: null } } as unknown as Chat;
}

describe('an import', () => {
  beforeEach(() => {
    importReport.value = null;
  });

  it('does not say that it stored what the browser does not keep', async () => {
    const library = new Library(() => undefined);
    library.failure.value = 'forbidden';
    const chat = chatWith(library);
    await importFiles(chat, [file]);
    library.close();
    expect(importReport.value).toMatchObject({ numConversations: 0, numPrompts: 0 });
    expect(importReport.value?.problems.map(({ code, place }) => `${code} ${place}`)).toEqual([
      'not_stored chats.json: p',
      'not_stored chats.json: first',
      'not_stored chats.json: second',
      'not_stored chats.json: third',
    ]);
    expect(chat.dialog.value).toBe('import');
  });

  it('says which conversations there was no room for, and keeps the others', async () => {
    const restore = ([whole]: WholeConversation[]): Promise<boolean> =>
      whole?.conversation.title === 'second'
        ? Promise.reject(new DOMException('no room', 'QuotaExceededError'))
        : Promise.resolve(true);
    await importFiles(chatWith({ restore, addPromptVersions: async () => true }), [file]);
    expect(importReport.value).toEqual({
      numConversations: 2,
      numPrompts: 1,
      problems: [{ code: 'not_stored', place: 'chats.json: second' }],
    });
  });

  it('goes on behind a file that is gone', async () => {
    const gone = new File(['{'], 'gone.json');
    gone.text = () => Promise.reject(new DOMException('gone', 'NotReadableError'));
    await importFiles(chatWith({ restore: async () => true, addPromptVersions: async () => true }), [gone, file]);
    expect(importReport.value).toEqual({
      numConversations: 3,
      numPrompts: 1,
      problems: [{ code: 'unreadable', place: 'gone.json' }],
    });
  });
});
