/** Ends answers whose tab is gone: closed, reloaded or crashed while it was writing them. */
import type { Library } from './library';
import { answerReleased } from './live-locks';
import { change, isUnderWay, type Message, type Thread, toRecord } from './thread';

export class CutOff {
  /** Ids of the answers that are waited for. */
  private readonly watched = new Set<string>();
  private readonly end = new AbortController();

  constructor(
    private readonly library: Library,
    private readonly isMine: (message: Pick<Message, 'id' | 'conversation'>) => boolean,
  ) {}

  /** Waits for the end of every answer that another tab is writing, and calls it interrupted where none came. */
  watch(thread: Thread): void {
    for (const message of thread.nodes.peek().values()) {
      if (!isUnderWay(message) || this.isMine(message) || this.watched.has(message.id)) continue;
      this.watched.add(message.id);
      void this.follow(thread, message)
        // Watching ended with the page, or storage failed: the next look at the conversation begins anew.
        .catch(() => undefined)
        .finally(() => this.watched.delete(message.id));
    }
  }

  private async follow(thread: Thread, message: Message): Promise<void> {
    await answerReleased(message.id, this.end.signal);
    // The end of an answer is saved before its lock is let go; the news of it may still be on the way.
    const whole = await this.library.get(thread.id);
    if (!whole || this.end.signal.aborted) return;
    thread.merge(whole.conversation, whole.messages, this.isMine);
    if (!isUnderWay(message) || this.isMine(message)) return;
    change(message, { status: 'interrupted' });
    await this.library.write(thread.record.peek(), [toRecord(message)], {}, false);
  }

  /** Watches no more. */
  close(): void {
    this.end.abort();
  }
}
