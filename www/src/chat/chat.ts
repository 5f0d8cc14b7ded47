/** The chat: which conversation is open, and everything a visitor can do with it. Components show it and call its methods. */
import { batch, computed, effect, type Signal, signal } from '@preact/signals';
import type { DocumentSettings, SourceRecord } from '../documents/source';
import { hrefTo, navigate, route } from '../shell/router';
import type { LoadedModel } from '../state/engine';
import type { Session } from '../state/session';
import { Answering } from './answering';
import { FILE_NOTICE } from './attachments';
import { Budgets } from './budgets';
import type { ChatNews } from './channel';
import { CutOff } from './cut-off';
import { Gauge } from './gauge';
import { Library } from './library';
import { canWatch } from './live-locks';
import type { Attachment, BudgetSettings, ConversationRecord, SummaryRecord, SystemPrompt } from './records';
import { NO_SYSTEM, titleFrom } from './records';
import { t } from './text';
import { change, type Message, NEW_ANSWER, Thread, toRecord } from './thread';

/** How long a deleted conversation can be brought back. */
const UNDO_MS = 10_000;

export type ChatDialog = 'prompt' | 'budget' | 'tree' | 'import' | 'documents' | 'source';

export class Chat {
  readonly library = new Library((news) => void this.follow(news));
  readonly thread: Signal<Thread>;
  readonly draft = signal('');
  readonly files: Signal<readonly Attachment[]> = signal([]);
  readonly dialog: Signal<ChatDialog | null> = signal(null);
  /** What the dialog `source` shows. */
  readonly source: Signal<SourceRecord | null> = signal(null);
  /** Counts requests to put the keyboard focus into the composer, where a pressed button disappears. */
  readonly composerFocus = signal(0);
  readonly budgets = new Budgets();
  readonly answering: Answering;
  readonly gauge: Gauge;
  private readonly cutOff: CutOff;
  /** The answer under way in the open conversation. */
  readonly running = computed(() => this.answering.running.value.get(this.thread.value.id)?.message ?? null);
  readonly busy = computed(() => this.running.value !== null);
  /** Open conversations that go on being answered while another is shown. */
  private readonly threads = new Map<string, Thread>();
  private readonly ends: (() => void)[] = [];

  constructor(readonly session: Session) {
    this.thread = signal(Thread.empty(this.defaultSystem()));
    this.answering = new Answering(session, this.budgets, (thread, messages) => this.save(thread, messages));
    this.gauge = new Gauge(this);
    this.cutOff = new CutOff(this.library, (message) => this.isMine(message));
    const stop = (): void => this.answering.stopAll();
    session.beforeLoad.add(stop);
    const leave = (): void => this.answering.saveAll();
    addEventListener('pagehide', leave);
    this.ends.push(
      () => removeEventListener('pagehide', leave),
      () => session.beforeLoad.delete(stop),
      effect(() => {
        const { view, rest } = route.value;
        if (view === 'chat') void this.open(rest[0] ?? null);
      }),
      () => this.gauge.close(),
      () => this.cutOff.close(),
      () => this.library.close(),
    );
  }

  /** Everything was erased: nothing is written any more until the page is loaded again. */
  erased(): void {
    this.answering.stopAll();
    this.library.failure.value = 'erased';
    this.library.list.value = [];
    this.close();
    this.thread.value = Thread.empty(NO_SYSTEM);
  }

  /** Lets go of everything outside: the address, the database, the other tabs. */
  close(): void {
    for (const end of this.ends) end();
  }

  /** The system prompt of a new conversation. */
  private defaultSystem(): SystemPrompt {
    const text = this.session.settings.peek().systemPrompt;
    return text === '' ? NO_SYSTEM : { text, name: null, version: null };
  }

  /** Shows a conversation; null or one that is gone is a new one. */
  async open(id: string | null): Promise<void> {
    const current = this.thread.peek();
    if (id === current.id || (id === null && !current.isStored)) return;
    if (id === null) {
      this.show(Thread.empty(this.defaultSystem()));
      return;
    }
    const known = this.threads.get(id);
    const whole = known ? null : await this.library.get(id);
    if (route.peek().rest[0] !== id) return;
    if (known) this.show(known);
    else if (whole) {
      const thread = new Thread(whole.conversation, whole.messages, true);
      this.show(thread);
      this.cutOff.watch(thread);
    } else navigate(hrefTo('chat'), { replace: true });
  }

  private show(thread: Thread): void {
    const before = this.thread.peek();
    if (!this.answering.running.peek().has(before.id)) this.threads.delete(before.id);
    if (thread.isStored) this.threads.set(thread.id, thread);
    this.thread.value = thread;
  }

  /** Follows what another tab did. */
  private async follow(news: ChatNews): Promise<void> {
    if (news.kind === 'changed') {
      const thread = this.threads.get(news.conversation);
      const whole = thread ? await this.library.get(news.conversation) : null;
      if (thread && whole) {
        thread.merge(whole.conversation, whole.messages, (message) => this.isMine(message));
        if (canWatch()) this.cutOff.watch(thread);
      }
    } else if (news.kind === 'deleted') this.forget(news.conversation);
    else if (news.kind === 'erased') this.erased();
  }

  /** Whether this tab is writing an answer. */
  private isMine({ id, conversation }: Pick<Message, 'id' | 'conversation'>): boolean {
    return this.answering.running.peek().get(conversation)?.message.id === id;
  }

  /** Ends what is shown of a conversation that no longer is. */
  private forget(id: string): void {
    this.answering.stop(id);
    this.threads.delete(id);
    if (this.thread.peek().id === id) this.newChat();
  }

  newChat(): void {
    batch(() => {
      this.session.announcement.value = t('newChat');
      this.session.notices.dismissAll(FILE_NOTICE);
      this.composerFocus.value += 1;
    });
    navigate(hrefTo('chat'));
    void this.open(null);
  }

  /** Asks `question` with the files attached, at the end of the branch that is shown. */
  send(question: string): void {
    const files = this.files.peek();
    if ((question.trim() === '' && files.length === 0) || this.busy.peek()) return;
    batch(() => {
      this.draft.value = '';
      this.files.value = [];
      this.session.notices.dismissAll(FILE_NOTICE);
      this.composerFocus.value += 1;
    });
    this.ask(question.trim(), files, this.thread.peek().record.peek().leaf);
  }

  private ask(text: string, files: readonly Attachment[], parent: string | null): void {
    const thread = this.thread.peek();
    const question = thread.add('user', parent, { ...NEW_ANSWER, text, status: 'done' }, files);
    const { isTitled, title } = thread.record.peek();
    if (!isTitled && (title === '' || parent === null))
      thread.patch({ title: titleFrom(text || (files[0]?.name ?? '')) });
    void this.answer(thread, question);
  }

  private async answer(thread: Thread, question: Message): Promise<void> {
    const answer = thread.add('assistant', question.id, NEW_ANSWER);
    // Not waited for: a browser whose storage is slow or stuck still answers. Writes keep their order.
    void this.save(thread, [question, answer]);
    const result = await this.answering.run(thread, answer);
    if (result === 'no_model') this.takeBack(thread, question, answer);
  }

  /** Puts a question that no model could get back into the composer. */
  private takeBack(thread: Thread, question: Message, answer: Message): void {
    thread.remove([question.id, answer.id], question.parent);
    batch(() => {
      this.draft.value = question.state.peek().text;
      this.files.value = question.attachments;
    });
    if (thread.nodes.peek().size > 0) {
      void this.library.removeMessages(thread.id, [question.id, answer.id]);
      void this.library.update(thread.id, thread.takeUnsaved());
    } else {
      thread.isStored = false;
      void this.library.delete(thread.id);
      navigate(hrefTo('chat'), { replace: true });
    }
  }

  /** Another answer to the same question, as a branch; one that failed without a word is replaced. */
  async regenerate(answer: Message): Promise<void> {
    const thread = this.thread.peek();
    const question = answer.parent === null ? undefined : thread.nodes.peek().get(answer.parent);
    if (!question || this.busy.peek()) return;
    const { status, text } = answer.state.peek();
    if (status !== 'failed' || text !== '') {
      await this.answer(thread, question);
      return;
    }
    change(answer, NEW_ANSWER);
    thread.patch({ leaf: answer.id });
    void this.save(thread, [answer]);
    await this.answering.run(thread, answer);
  }

  /** A changed message as a branch beside the old one; a changed question is answered. */
  edit(message: Message, text: string): void {
    if (this.busy.peek() || text.trim() === '' || text === message.state.peek().text) return;
    if (message.role === 'user') {
      this.ask(text.trim(), message.attachments, message.parent);
      return;
    }
    const thread = this.thread.peek();
    const changed = thread.add('assistant', message.parent, { ...NEW_ANSWER, text, status: 'done' });
    void this.save(thread, [changed]);
  }

  /** Shows the branch through a message. */
  select(id: string): void {
    const thread = this.thread.peek();
    if (this.busy.peek()) return;
    const leaf = thread.leafBelow(id);
    thread.patch({ leaf });
    void this.library.update(thread.id, thread.takeUnsaved());
  }

  /** Stops the answer under way, and the load it waits for. */
  stop(): void {
    this.answering.stop(this.thread.peek().id);
    this.composerFocus.value += 1;
  }

  /** Changes the system prompt of the open conversation; without one yet it is that of new ones too. */
  setSystem(system: SystemPrompt): void {
    this.patch({ system });
  }

  setDocuments(documents: DocumentSettings): void {
    this.patch({ documents });
  }

  openSource(source: SourceRecord): void {
    this.source.value = source;
    this.dialog.value = 'source';
  }

  setBudget(budget: BudgetSettings): void {
    this.patch({ budget });
  }

  setSummary(summary: SummaryRecord | null): void {
    this.patch({ summary });
  }

  private patch(fields: Partial<ConversationRecord>): void {
    const thread = this.thread.peek();
    thread.patch(fields);
    if (thread.isStored) void this.library.update(thread.id, thread.takeUnsaved());
  }

  async rename(id: string, title: string): Promise<void> {
    const fields = { title: title.trim(), isTitled: true };
    if (fields.title === '') return;
    this.threads.get(id)?.patch(fields);
    this.threads.get(id)?.takeUnsaved();
    await this.library.update(id, fields);
  }

  /** Deletes a conversation and offers to bring it back. */
  async delete(id: string): Promise<void> {
    const title = this.library.list.peek()?.find((one) => one.id === id)?.title ?? '';
    this.forget(id);
    const undo = await this.library.delete(id);
    if (!undo) return;
    const run = (): void => void undo().then(() => navigate(hrefTo('chat', [id])));
    const notice = {
      id: `deleted ${id}`,
      text: () => t('deleted', { title }),
      action: { label: () => t('undo'), run },
    };
    this.session.notices.show(notice, UNDO_MS);
  }

  /** Writes messages and the conversation's fields; a new conversation becomes a stored one. */
  private async save(thread: Thread, messages: readonly Message[]): Promise<void> {
    const isNew = !thread.isStored;
    const fields = { ...thread.takeUnsaved(), leaf: thread.record.peek().leaf, updated: Date.now() };
    if (isNew) {
      thread.isStored = true;
      this.threads.set(thread.id, thread);
      if (thread === this.thread.peek()) navigate(hrefTo('chat', [thread.id]), { replace: true });
    }
    await this.library.write(thread.record.peek(), messages.map(toRecord), fields, isNew).catch(() => {
      this.session.notices.show({ id: 'unsaved', text: () => t('unsaved') });
    });
  }

  /** The loaded model, if there is one. */
  model(): LoadedModel | null {
    const state = this.session.loader.state.value;
    return state.kind === 'ready' ? state.model : null;
  }
}
