/** All conversations: the list, search, renaming, deleting with a way back. Keeps the other tabs in step. */
import { type Signal, signal } from '@preact/signals';
import { type ChatNews, type NewsChannel, openChannel } from './channel';
import type { ConversationRecord, MessageRecord, PromptRecord, PromptVersion } from './records';
import { ChatStore, type Hit, type WholeConversation } from './store';

export class Library {
  /** The one that was changed last in front; null until it was read. */
  readonly list: Signal<readonly ConversationRecord[] | null> = signal(null);
  readonly prompts: Signal<readonly PromptRecord[]> = signal([]);
  /** Why nothing is stored: the browser forbids it, or another tab erased everything; null if it is. */
  readonly failure: Signal<'forbidden' | 'erased' | null> = signal(null);
  /** What is searched for, and what was found; hits are null without a search. */
  readonly query = signal('');
  readonly hits: Signal<ReadonlyMap<string, Hit> | null> = signal(null);
  private readonly opened: Promise<ChatStore | null>;
  private readonly channel: NewsChannel;
  private searching = new AbortController();

  /** `onNews` is told what another tab did, after the lists here have followed. */
  constructor(private readonly onNews: (news: ChatNews) => void) {
    this.channel = openChannel((news) => void this.follow(news));
    this.opened = ChatStore.open(() => {
      this.failure.value = 'erased';
    }).catch(() => {
      this.failure.value = 'forbidden';
      return null;
    });
    void this.refresh();
    void this.refreshPrompts();
  }

  /** The database, or null where there is none. */
  store(): Promise<ChatStore | null> {
    return this.failure.peek() ? Promise.resolve(null) : this.opened;
  }

  private async follow(news: ChatNews): Promise<void> {
    if (news.kind === 'prompts') await this.refreshPrompts();
    else if (news.kind !== 'erased') await this.refresh();
    this.onNews(news);
  }

  async refresh(): Promise<void> {
    const store = await this.store();
    this.list.value = store ? await store.list().catch(() => []) : [];
  }

  private async refreshPrompts(): Promise<void> {
    const store = await this.store();
    this.prompts.value = store ? await store.prompts().catch(() => []) : [];
  }

  async get(id: string): Promise<WholeConversation | null> {
    return (await this.store())?.get(id) ?? null;
  }

  /** Writes messages and fields of a conversation; one that the store does not have is made where `isNew`. */
  async write(
    record: ConversationRecord,
    messages: readonly MessageRecord[],
    change: Partial<ConversationRecord>,
    isNew: boolean,
  ): Promise<void> {
    const store = await this.store();
    if (!store) return;
    if (isNew) await store.add({ conversation: { ...record, ...change }, messages });
    else await store.write(record.id, messages, change);
    await this.changed(record.id);
  }

  /** Changes fields of a conversation. */
  async update(id: string, change: Partial<ConversationRecord>): Promise<void> {
    await (await this.store())?.update(id, change);
    await this.changed(id);
  }

  async removeMessages(conversation: string, ids: readonly string[]): Promise<void> {
    await (await this.store())?.deleteMessages(ids);
    await this.changed(conversation);
  }

  /** Deletes a conversation; answers with how to bring it back. */
  async delete(id: string): Promise<(() => Promise<void>) | null> {
    const store = await this.store();
    const whole = await store?.delete(id);
    await this.refresh();
    this.channel.tell({ kind: 'deleted', conversation: id });
    if (!store || !whole) return null;
    return async () => {
      await this.restore([whole]);
    };
  }

  /** Adds whole conversations: deleted or imported ones; false where nothing is stored. Rejects where there is no room. */
  async restore(conversations: readonly WholeConversation[]): Promise<boolean> {
    const store = await this.store();
    if (!store) return false;
    try {
      for (const whole of conversations) {
        await store.add(whole);
        this.channel.tell({ kind: 'changed', conversation: whole.conversation.id });
      }
    } finally {
      await this.refresh();
    }
    return true;
  }

  /** Everything, for export. */
  async all(): Promise<{ conversations: WholeConversation[]; prompts: PromptRecord[] }> {
    const store = await this.store();
    if (!store) return { conversations: [], prompts: [] };
    const found = await Promise.all((await store.list()).map(({ id }) => store.get(id)));
    return { conversations: found.filter((whole) => whole !== null), prompts: await store.prompts() };
  }

  async addPromptVersion(name: string, text: string): Promise<number | null> {
    const added = await (await this.store())?.addPromptVersion(name, text);
    await this.promptsChanged();
    return added?.version ?? null;
  }

  /** Adds versions to a prompt, one on top of the other; false where nothing is stored. */
  async addPromptVersions(name: string, versions: readonly Pick<PromptVersion, 'text'>[]): Promise<boolean> {
    const store = await this.store();
    if (!store) return false;
    try {
      for (const { text } of versions) await store.addPromptVersion(name, text);
    } finally {
      await this.promptsChanged();
    }
    return true;
  }

  async putPrompts(prompts: readonly PromptRecord[]): Promise<void> {
    const store = await this.store();
    for (const prompt of prompts) await store?.putPrompt(prompt);
    await this.promptsChanged();
  }

  /** Deletes a prompt with its versions; answers with how to bring it back. */
  async deletePrompt(name: string): Promise<(() => Promise<void>) | null> {
    const prompt = await (await this.store())?.deletePrompt(name);
    await this.promptsChanged();
    return prompt ? () => this.putPrompts([prompt]) : null;
  }

  /** Looks for a text in all titles and messages; a later search ends an earlier one. */
  async search(text: string): Promise<void> {
    this.searching.abort();
    this.searching = new AbortController();
    const { signal } = this.searching;
    this.query.value = text;
    if (text.trim() === '') {
      this.hits.value = null;
      return;
    }
    const hits = (await (await this.store())?.search(text, signal)) ?? new Map<string, Hit>();
    if (!signal.aborted) this.hits.value = hits;
  }

  close(): void {
    this.channel.close();
    void this.opened.then((store) => store?.close());
  }

  private async changed(conversation: string): Promise<void> {
    this.channel.tell({ kind: 'changed', conversation });
    await this.refresh();
  }

  private async promptsChanged(): Promise<void> {
    this.channel.tell({ kind: 'prompts' });
    await this.refreshPrompts();
  }
}
