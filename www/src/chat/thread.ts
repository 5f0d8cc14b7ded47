/** One conversation in memory: its messages as signals, and the branch that is shown. Knows no engine and no screen. */
import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { blocksOf } from './blocks';
import type { Block } from './markdown';
import {
  type Attachment,
  type ConversationRecord,
  type MessageRecord,
  newConversation,
  newId,
  type SystemPrompt,
} from './records';
import { childrenOf, newestLeaf, pathTo } from './tree';

/** The part of a message that changes while it is written. */
export type MessageState = Pick<MessageRecord, 'text' | 'status' | 'stats' | 'problem' | 'sources'>;

/** A message: what never changes, and what does. */
export interface Message extends Omit<MessageRecord, keyof MessageState> {
  readonly state: Signal<MessageState>;
  /** Its Markdown, made when somebody looks; blocks that did not change are the same objects. */
  readonly blocks: ReadonlySignal<readonly Block[]>;
}

export const NEW_ANSWER: MessageState = { text: '', status: 'waiting', stats: null, problem: null };

export function toMessage({ text, status, stats, problem, sources, ...fixed }: MessageRecord): Message {
  const state = signal<MessageState>({ text, status, stats, problem, sources });
  let before: readonly Block[] = [];
  const blocks = computed(() => {
    before = blocksOf(state.value.text, before);
    return before;
  });
  return { ...fixed, state, blocks };
}

export function toRecord({ state, blocks: _, ...fixed }: Message): MessageRecord {
  return { ...fixed, ...state.peek() };
}

export class Thread {
  readonly record: Signal<ConversationRecord>;
  /** All messages of all branches. The map is replaced when one is added or removed. */
  readonly nodes: Signal<ReadonlyMap<string, Message>>;
  /** Whether the store has it. A conversation without messages is not stored. */
  isStored: boolean;
  /** The messages of the branch that is shown. */
  readonly path = computed(() => pathTo(this.nodes.value, this.record.value.leaf));
  private readonly children = computed(() => childrenOf(this.nodes.value));

  constructor(record: ConversationRecord, messages: readonly MessageRecord[] = [], isStored = false) {
    this.record = signal(record);
    this.nodes = signal(new Map(messages.map((message) => [message.id, toMessage(message)])));
    this.isStored = isStored;
  }

  static empty(system: SystemPrompt): Thread {
    return new Thread(newConversation(system));
  }

  get id(): string {
    return this.record.peek().id;
  }

  /** Fields that were changed here and are not written yet: only these are, so that other tabs' changes stay. */
  private unsaved: Partial<ConversationRecord> = {};

  /** Changes fields in memory. */
  patch(change: Partial<ConversationRecord>): void {
    this.unsaved = { ...this.unsaved, ...change };
    this.record.value = { ...this.record.peek(), ...change };
  }

  /** The fields to write now; they then count as written. */
  takeUnsaved(): Partial<ConversationRecord> {
    const fields = this.unsaved;
    this.unsaved = {};
    return fields;
  }

  /** Messages with the same parent, this one included, oldest first. */
  siblings(message: Pick<Message, 'parent' | 'id'>): readonly Message[] {
    return this.children.value.get(message.parent) ?? [];
  }

  /** Adds a message and shows its branch. */
  add(
    role: MessageRecord['role'],
    parent: string | null,
    state: MessageState,
    attachments: readonly Attachment[] = [],
  ) {
    const fixed = { id: newId(), conversation: this.id, parent, role, created: this.nextTime(), attachments };
    const message = toMessage({ ...fixed, ...state });
    batch(() => {
      this.nodes.value = new Map([...this.nodes.peek(), [message.id, message]]);
      this.patch({ leaf: message.id });
    });
    return message;
  }

  /** Takes messages away again; the branch then ends at `leaf`. */
  remove(ids: readonly string[], leaf: string | null): void {
    batch(() => {
      this.nodes.value = new Map([...this.nodes.peek()].filter(([id]) => !ids.includes(id)));
      this.patch({ leaf });
    });
  }

  /** The end of the newest branch through a message. */
  leafBelow(id: string): string | null {
    return newestLeaf(this.nodes.peek(), id);
  }

  /**
   * Takes over what the store had a moment ago. `isMine` names the messages that this tab is writing: what it has of them is
   * newer. Messages that are only here are not written yet. The branch that is shown stays.
   */
  merge(
    record: ConversationRecord,
    messages: readonly MessageRecord[],
    isMine: (message: MessageRecord) => boolean,
  ): void {
    const next = new Map(this.nodes.peek());
    batch(() => {
      for (const message of messages) {
        const { id, text, status, stats, problem, sources } = message;
        const here = next.get(id);
        if (!here) next.set(id, toMessage(message));
        else if (!isMine(message)) here.state.value = { text, status, stats, problem, sources };
      }
      this.nodes.value = next;
      const leaf = this.record.peek().leaf;
      const kept = leaf !== null && next.has(leaf) ? leaf : record.leaf;
      // What another tab appended behind the end that is shown here is shown too.
      this.record.value = { ...record, ...this.unsaved, leaf: kept === null ? null : newestLeaf(next, kept) };
    });
  }

  /** Later than every message there is, so that the order of siblings is that of their making. */
  private nextTime(): number {
    let latest = 0;
    for (const { created } of this.nodes.peek().values()) latest = Math.max(latest, created);
    return Math.max(Date.now(), latest + 1);
  }
}

/** Changes part of a message. */
export function change(message: Message, part: Partial<MessageState>): void {
  message.state.value = { ...message.state.peek(), ...part };
}

/** Whether an answer is still being written, in this tab or another. */
export function isUnderWay(message: Message): boolean {
  const { status } = message.state.value;
  return status === 'waiting' || status === 'streaming';
}
