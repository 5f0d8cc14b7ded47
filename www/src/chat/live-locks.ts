/**
 * Which answers are being written now, in any tab. The tab that writes one holds a lock of its name; a tab that is closed or
 * crashes lets go of it, so an answer that claims to be under way and has no lock was cut off.
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

/** Ids of the answers that some tab is writing. */
export async function heldAnswers(): Promise<Set<string>> {
  const held = (await navigator.locks?.query())?.held ?? [];
  return new Set(held.flatMap(({ name }) => (name?.startsWith(PREFIX) ? [name.slice(PREFIX.length)] : [])));
}
