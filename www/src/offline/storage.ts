/** What this page keeps on the device, and erasing all of it. Only what is Pagewise's: an origin may have other sites. */
import { openChannel } from '../chat/channel';
import { DATABASE } from '../chat/store';
import { DOCUMENTS_DATABASE, DocumentStore } from '../documents/store';
import type { Session } from '../state/session';

const PREFIX = 'pagewise';
const MODELS_DATABASE = 'pagewise-models';

/** Bytes of what is kept, by kind; null where the browser does not tell. */
export interface StorageReport {
  readonly chatBytes: number | null;
  readonly numConversations: number;
  readonly documentBytes: number | null;
  readonly numDocuments: number;
  readonly modelBytes: number | null;
  readonly models: readonly { readonly id: string; readonly name: string; readonly bytes: number }[];
  readonly pageBytes: number | null;
  readonly settingsBytes: number;
}

export async function reportStorage(): Promise<StorageReport> {
  const [chats, documents, models, pageBytes] = await Promise.all([
    measureChats(),
    measureDocuments(),
    listModels(),
    measureCaches(),
  ]);
  return {
    chatBytes: chats?.bytes ?? null,
    numConversations: chats?.count ?? 0,
    documentBytes: documents?.bytes ?? null,
    numDocuments: documents?.count ?? 0,
    modelBytes: models ? models.reduce((sum, { bytes }) => sum + bytes, 0) : null,
    models: models ?? [],
    pageBytes,
    settingsBytes: ownKeys().reduce((sum, key) => sum + key.length + (localStorage.getItem(key)?.length ?? 0), 0) * 2,
  };
}

async function measureChats(): Promise<{ bytes: number; count: number } | null> {
  try {
    const { ChatStore } = await import('../chat/store');
    const store = await ChatStore.open();
    const list = await store.list();
    const whole = await Promise.all(list.map(({ id }) => store.get(id)));
    const prompts = await store.prompts();
    store.close();
    return { bytes: new Blob([JSON.stringify([whole, prompts])]).size, count: list.length };
  } catch {
    return null;
  }
}

async function measureDocuments(): Promise<{ bytes: number; count: number } | null> {
  try {
    const store = await DocumentStore.open();
    const list = await store.list();
    let bytes = 0;
    // One after another: all of them at once may be a lot.
    for (const document of list) {
      bytes += new Blob([JSON.stringify([document, await store.passagesOf(document.id)])]).size;
    }
    store.close();
    return { bytes, count: list.length };
  } catch {
    return null;
  }
}

async function listModels(): Promise<StorageReport['models'] | null> {
  try {
    const { storedModels } = await import('../state/engine');
    return await storedModels();
  } catch {
    return null;
  }
}

/** Removes a stored model; one that is loaded goes on working. */
export async function deleteModel(id: string): Promise<void> {
  const { deleteStoredModel } = await import('../state/engine');
  await deleteStoredModel(id);
}

/** Names of our caches: those of this page's folder, and those that have no folder in their names. */
async function ownCaches(): Promise<string[]> {
  const scope = new URL('./', document.baseURI).href;
  const names = await caches.keys();
  return names.filter((name) => name.startsWith(`${PREFIX}-`) && (name.endsWith(scope) || !name.includes('://')));
}

async function measureCaches(): Promise<number | null> {
  if (typeof caches === 'undefined') return null;
  let bytes = 0;
  for (const name of await ownCaches()) {
    for (const response of await (await caches.open(name)).matchAll()) bytes += (await response.blob()).size;
  }
  return bytes;
}

function ownKeys(): string[] {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(`${PREFIX}.`));
  } catch {
    return [];
  }
}

/** What could not be erased: another tab holds it, or the browser refused. */
export type ErasePart = 'chats' | 'documents' | 'models' | 'page' | 'settings';

/** Erases everything, as far as it can; answers with what is still there. */
export async function eraseAll(session: Session, closeChat: () => void): Promise<ErasePart[]> {
  for (const stop of session.beforeLoad) stop();
  await session.loader.unload();
  closeChat();
  const channel = openChannel(() => undefined);
  channel.tell({ kind: 'erased' });
  const failed: ErasePart[] = [];
  const attempt = async (part: ErasePart, work: () => Promise<unknown>): Promise<void> => {
    await work().catch(() => failed.push(part));
  };
  await attempt('chats', () => deleteDatabase(DATABASE));
  await attempt('documents', () => deleteDatabase(DOCUMENTS_DATABASE));
  await attempt('models', eraseModels);
  await attempt('page', erasePage);
  await attempt('settings', async () => {
    for (const key of ownKeys()) localStorage.removeItem(key);
  });
  channel.close();
  return failed;
}

async function eraseModels(): Promise<void> {
  await deleteDatabase(MODELS_DATABASE);
  const root = await navigator.storage?.getDirectory?.();
  if (!root) return;
  const { keys } = root as FileSystemDirectoryHandle & { keys(): AsyncIterable<string> };
  const names: string[] = [];
  for await (const name of keys.call(root)) if (name.startsWith(PREFIX)) names.push(name);
  for (const name of names) await root.removeEntry(name, { recursive: true });
}

async function erasePage(): Promise<void> {
  // First, so that it does not fill its caches again.
  const registration = await navigator.serviceWorker?.getRegistration(document.baseURI);
  await registration?.unregister();
  if (typeof caches === 'undefined') return;
  for (const name of await ownCaches()) await caches.delete(name);
}

/** Open connections of other tabs are asked to close by the browser; one that does not is a failure. */
function deleteDatabase(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error(`${name} is in use`));
  });
}
