/**
 * Conversations, messages and prompts in IndexedDB. Every change is one transaction that reads what is there now, so that two
 * tabs never overwrite each other's fields; a message is a record of its own, so that they never overwrite each other's messages.
 */
import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import type { ConversationRecord, MessageRecord, PromptRecord, PromptVersion } from './records';

export const DATABASE = 'pagewise.chats';

interface Schema extends DBSchema {
  conversations: { key: string; value: ConversationRecord; indexes: { updated: number } };
  messages: { key: string; value: MessageRecord; indexes: { conversation: string } };
  prompts: { key: string; value: PromptRecord };
}

/** A conversation with all its messages. */
export interface WholeConversation {
  readonly conversation: ConversationRecord;
  readonly messages: readonly MessageRecord[];
}

/** A place where a search found something. */
export interface Hit {
  readonly conversation: string;
  /** Text around the first place, and where in it the words are. */
  readonly before: string;
  readonly found: string;
  readonly after: string;
}

export class ChatStore {
  private constructor(private readonly db: IDBPDatabase<Schema>) {}

  /** Opens the database; rejects where the browser allows none. `onClosed` is told when another tab erases it. */
  static async open(onClosed: () => void = () => undefined): Promise<ChatStore> {
    const db = await openDB<Schema>(DATABASE, 1, {
      upgrade(database) {
        database.createObjectStore('conversations', { keyPath: 'id' }).createIndex('updated', 'updated');
        database.createObjectStore('messages', { keyPath: 'id' }).createIndex('conversation', 'conversation');
        database.createObjectStore('prompts', { keyPath: 'name' });
      },
      blocking(_current, _blocked, event) {
        (event.target as IDBDatabase).close();
        onClosed();
      },
      terminated: onClosed,
    });
    return new ChatStore(db);
  }

  /** All conversations, the one that was changed last in front. */
  async list(): Promise<ConversationRecord[]> {
    return (await this.db.getAllFromIndex('conversations', 'updated')).reverse();
  }

  async get(id: string): Promise<WholeConversation | null> {
    const tx = this.db.transaction(['conversations', 'messages']);
    const [conversation, messages] = await Promise.all([
      tx.objectStore('conversations').get(id),
      tx.objectStore('messages').index('conversation').getAll(id),
    ]);
    return conversation ? { conversation, messages } : null;
  }

  /** Puts back or brings in a whole conversation. */
  async add({ conversation, messages }: WholeConversation): Promise<void> {
    const tx = this.db.transaction(['conversations', 'messages'], 'readwrite');
    void tx.objectStore('conversations').put(conversation);
    for (const message of messages) void tx.objectStore('messages').put(message);
    await tx.done;
  }

  /** Changes some fields of a conversation; null if it is gone. */
  async update(id: string, change: Partial<ConversationRecord>): Promise<ConversationRecord | null> {
    const tx = this.db.transaction('conversations', 'readwrite');
    const now = await tx.store.get(id);
    const next = now ? { ...now, ...change, id } : null;
    if (next) void tx.store.put(next);
    await tx.done;
    return next;
  }

  /** Writes messages of a conversation and changes its fields, in one; not if it is gone. */
  async write(
    id: string,
    messages: readonly MessageRecord[],
    change: Partial<ConversationRecord> = {},
  ): Promise<boolean> {
    const tx = this.db.transaction(['conversations', 'messages'], 'readwrite');
    const now = await tx.objectStore('conversations').get(id);
    if (now) {
      void tx.objectStore('conversations').put({ ...now, ...change, id });
      for (const message of messages) void tx.objectStore('messages').put(message);
    }
    await tx.done;
    return now !== undefined;
  }

  async deleteMessages(ids: readonly string[]): Promise<void> {
    const tx = this.db.transaction('messages', 'readwrite');
    for (const id of ids) void tx.store.delete(id);
    await tx.done;
  }

  /** Removes a conversation and answers with all of it, so that it can be put back. */
  async delete(id: string): Promise<WholeConversation | null> {
    const tx = this.db.transaction(['conversations', 'messages'], 'readwrite');
    const conversation = await tx.objectStore('conversations').get(id);
    const messages = await tx.objectStore('messages').index('conversation').getAll(id);
    void tx.objectStore('conversations').delete(id);
    for (const message of messages) void tx.objectStore('messages').delete(message.id);
    await tx.done;
    return conversation ? { conversation, messages } : null;
  }

  /** The first place in each conversation, title or message, that has `text`, whatever the case. */
  async search(text: string, signal: AbortSignal): Promise<Map<string, Hit>> {
    const wanted = fold(text.trim());
    const hits = new Map<string, Hit>();
    if (wanted === '') return hits;
    for (const { id, title } of await this.list()) note(hits, id, title, wanted);
    let cursor = await this.db.transaction('messages').store.openCursor();
    while (cursor && !signal.aborted) {
      const { conversation, text: body, attachments } = cursor.value;
      for (const part of [body, ...attachments.map(({ name }) => name)]) note(hits, conversation, part, wanted);
      cursor = await cursor.continue();
    }
    return hits;
  }

  async prompts(): Promise<PromptRecord[]> {
    return this.db.getAll('prompts');
  }

  /** Adds a version to a prompt, or makes the prompt. The same text as the newest version adds none. */
  async addPromptVersion(name: string, text: string, now: number = Date.now()): Promise<PromptVersion> {
    const tx = this.db.transaction('prompts', 'readwrite');
    const versions = (await tx.store.get(name))?.versions ?? [];
    const newest = versions.at(-1);
    const added = newest?.text === text ? newest : { version: (newest?.version ?? 0) + 1, text, created: now };
    if (added !== newest) void tx.store.put({ name, versions: [...versions, added] });
    await tx.done;
    return added;
  }

  async putPrompt(prompt: PromptRecord): Promise<void> {
    await this.db.put('prompts', prompt);
  }

  async deletePrompt(name: string): Promise<PromptRecord | null> {
    const tx = this.db.transaction('prompts', 'readwrite');
    const prompt = await tx.store.get(name);
    void tx.store.delete(name);
    await tx.done;
    return prompt ?? null;
  }

  close(): void {
    this.db.close();
  }
}

/** Letters as they are compared: composed alike, without case. */
export function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

const AROUND = 36;

function note(hits: Map<string, Hit>, conversation: string, text: string, wanted: string): void {
  if (hits.has(conversation)) return;
  const folded = fold(text);
  const at = folded.indexOf(wanted);
  if (at < 0) return;
  // Folding rarely changes lengths; where it does, the folded text is shown.
  const shown = folded.length === text.length ? text : folded;
  const [start, end] = [Math.max(0, at - AROUND), at + wanted.length];
  const line = (part: string): string => part.replace(/\s+/g, ' ');
  hits.set(conversation, {
    conversation,
    before: `${start > 0 ? '…' : ''}${line(shown.slice(start, at))}`,
    found: line(shown.slice(at, end)),
    after: `${line(shown.slice(end, end + AROUND))}${end + AROUND < shown.length ? '…' : ''}`,
  });
}
