/** Short messages above the composer or below the view, dismissed one by one or by themselves. */
import { type Signal, signal } from '@preact/signals';

export interface Notice {
  /** The same id is shown once. */
  readonly id: string;
  /** A function, so that it follows the language. */
  readonly text: () => string;
  /** What its button does; the notice goes with it. */
  readonly action?: { readonly label: () => string; readonly run: () => void };
}

/** The notices of now. */
export class Notices {
  readonly list: Signal<readonly Notice[]> = signal([]);
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();

  /** Shows a notice in place of one with the same id; for `forMs`, or until it is dismissed. */
  show(notice: Notice, forMs?: number): void {
    this.dismiss(notice.id);
    this.list.value = [...this.list.peek(), notice];
    if (forMs !== undefined)
      this.timers.set(
        notice.id,
        setTimeout(() => this.dismiss(notice.id), forMs),
      );
  }

  /** Takes away those whose ids begin with `prefix`. */
  dismissAll(prefix: string): void {
    for (const { id } of this.list.peek()) if (id.startsWith(prefix)) this.dismiss(id);
  }

  dismiss(id: string): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    if (this.list.peek().some((notice) => notice.id === id)) {
      this.list.value = this.list.peek().filter((notice) => notice.id !== id);
    }
  }
}
