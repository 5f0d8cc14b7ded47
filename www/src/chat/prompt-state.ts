/** What a change of the system prompt costs: tokens that are in the cache now and would have to be computed again. */
import type { Chat } from './chat';
import type { SystemPrompt } from './records';
import { toRecord } from './thread';
import { toMessages } from './tree';

/** Tokens lost; 0 if none are, null if only an engine could tell and none is loaded. */
export async function lostTokens(chat: Chat, system: SystemPrompt): Promise<number | null> {
  const thread = chat.thread.peek();
  const path = thread.path.peek().map(toRecord);
  const before = thread.record.peek().system;
  if (path.length === 0 || before.text === system.text) return 0;
  const model = chat.model();
  if (!model) return null;
  try {
    const [now, then] = await Promise.all([
      model.count(toMessages(path, before)),
      model.count(toMessages(path, system)),
    ]);
    return Math.max(0, now.cachedTokens - then.cachedTokens);
  } catch {
    return null;
  }
}

/** A name that `name_v3` can be made of. */
export function isPromptName(name: string): boolean {
  return /^[\p{L}\p{N}_]{1,40}$/u.test(name);
}

/** `support_v3`. */
export function versionName(name: string, version: number): string {
  return `${name}_v${version}`;
}
