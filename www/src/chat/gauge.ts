/**
 * How full the context is, in exact tokens: what the next message would send, and how much of it the cache has. Counted by the
 * engine, a moment after the last change, and not while it is answering.
 */
import { effect, type Signal, signal, untracked } from '@preact/signals';
import type { LoadedModel } from '../state/engine';
import { withAttachments } from './attachments';
import type { Chat } from './chat';
import { toRecord } from './thread';
import { toMessages } from './tree';

const SETTLE_MS = 250;

export interface GaugeReading {
  /** Tokens that would be sent now, the draft included. */
  readonly promptTokens: number;
  /** Of these, tokens that are in the cache. */
  readonly cachedTokens: number;
  readonly contextLength: number;
}

export class Gauge {
  readonly reading: Signal<GaugeReading | null> = signal(null);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private round = 0;
  private readonly end: () => void;

  constructor(private readonly chat: Chat) {
    this.end = effect(() => {
      const model = chat.model();
      const thread = chat.thread.value;
      // What the count depends on.
      void [thread.path.value, thread.record.value.system, chat.draft.value, chat.files.value];
      const isBusy = chat.busy.value;
      clearTimeout(this.timer);
      if (!model) this.reading.value = null;
      else if (!isBusy) this.timer = setTimeout(() => void this.count(model), SETTLE_MS);
    });
  }

  close(): void {
    clearTimeout(this.timer);
    this.end();
  }

  /** Counts now. */
  async count(model: LoadedModel): Promise<void> {
    const round = ++this.round;
    const messages = untracked(() => this.messages());
    const { contextLength } = model.info;
    if (messages.length === 0) {
      this.reading.value = { promptTokens: 0, cachedTokens: 0, contextLength };
      return;
    }
    const counted = await model.count(messages).catch(() => null);
    if (counted && round === this.round) this.reading.value = { ...counted, contextLength };
  }

  /** What would be sent now: the branch that is shown, and the draft. */
  messages(): ReturnType<typeof toMessages> {
    const { chat } = this;
    const thread = chat.thread.peek();
    const messages = toMessages(thread.path.peek().map(toRecord), thread.record.peek().system);
    const draft = withAttachments(chat.draft.peek().trim(), chat.files.peek());
    return draft === '' ? messages : [...messages, { role: 'user', content: draft }];
  }
}
