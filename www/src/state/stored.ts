/** Which models of the list are on this device already. */
import type { KnownModel } from './models';

/** What the package calls its folder and its database. */
const STORE = 'pagewise-models';

/** Whether anything was ever stored: a first visit does not load the engine to hear that nothing was. */
async function isAnythingStored(): Promise<boolean> {
  try {
    const root = await navigator.storage?.getDirectory?.();
    if (root && (await root.getDirectoryHandle(STORE))) return true;
  } catch {
    // No such folder, or none allowed.
  }
  try {
    return (await indexedDB.databases()).some(({ name }) => name === STORE);
  } catch {
    return false;
  }
}

/** The ids of those models that are wholly here. Never rejects. */
export async function findStored(known: readonly KnownModel[]): Promise<ReadonlySet<string>> {
  if (known.length === 0 || !(await isAnythingStored())) return new Set();
  try {
    const { isStored } = await import('./engine');
    const ids = known.map(({ id }) => id);
    const are = await Promise.all(ids.map(isStored));
    return new Set(ids.filter((_, index) => are[index]));
  } catch {
    // What cannot be looked up is offered as anything else is.
    return new Set();
  }
}
