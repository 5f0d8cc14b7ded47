/**
 * Which answers are being written now, in any tab. The tab that writes one holds a lock of its name, until the end of the answer
 * is saved; a tab that is closed or crashes lets go of it, so an answer that claims to be under way and has no lock was cut off.
 */

const PREFIX = 'pagewise.answer.';

/** Holds the lock of an answer until the returned function is called. */
export function holdAnswer(id: string): () => void {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  navigator.locks?.request(PREFIX + id, () => held).catch(() => undefined);
  return release;
}

/** Whether this browser has locks; all that have WebGPU do. */
export const canWatch = (): boolean => navigator.locks !== undefined;

/** Resolves once no tab is writing an answer; at once where no tab is, or where there are no locks. */
export async function answerReleased(id: string, signal: AbortSignal): Promise<void> {
  await navigator.locks?.request(PREFIX + id, { mode: 'shared', signal }, () => undefined);
}
