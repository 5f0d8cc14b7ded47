/** Opens the whole page in a test, with the fake engine, and closes it again. */
import { fireEvent, render, screen, waitFor, within } from '@testing-library/preact';
import { expect, vi } from 'vitest';
import { chatOf } from '../src/chat/context';
import { DATABASE } from '../src/chat/store';
import { lang } from '../src/i18n';
import { Frame } from '../src/shell/frame';
import { Session } from '../src/state/session';
import { fakeLoads, fakeOptions, fakeRequests } from './fake-engine';
// Before the first test, which would wait for it.
import '../src/chat/view';

export const MODEL = 'smollm2-135m-instruct';
const DEFAULTS = { ...fakeOptions };
let session: Session | null = null;

/** A browser with a GPU, and a registry with one model. */
export function prepare(): void {
  Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: () => Promise.resolve({}) }, configurable: true });
  const registry = {
    models: [
      { id: MODEL, name: 'SmolLM2 135M Instruct', bytes: 98_362_432, quantisation: 'Q4_1', licence: 'Apache-2.0' },
    ],
  };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(registry))));
}

/** Leaves nothing of a test behind; `keep` leaves what is stored, as closing a tab does. */
export async function closePage({ keep = false } = {}): Promise<void> {
  if (session) chatOf(session).close();
  session = null;
  if (keep) return;
  await new Promise((resolve) => {
    const request = indexedDB.deleteDatabase(DATABASE);
    request.onsuccess = resolve;
    request.onerror = resolve;
  });
  Object.assign(fakeOptions, DEFAULTS);
  fakeRequests.length = 0;
  fakeLoads.length = 0;
  lang.value = 'en';
  vi.unstubAllGlobals();
}

export function open(search = ''): Session {
  session = new Session(search);
  render(<Frame session={session} />);
  return session;
}

export const message = (): HTMLTextAreaElement => screen.getByRole('textbox', { name: 'Message' });
export const log = (): HTMLElement => screen.getByRole('log');
export const type = (text: string): void => void fireEvent.input(message(), { target: { value: text } });
/** In the list; on phones there is one in the bar. */
export const newChat = (): HTMLElement => screen.getAllByRole('button', { name: 'New chat' })[0] as HTMLElement;

export async function ask(text: string): Promise<void> {
  await screen.findByRole('textbox', { name: 'Message' });
  type(text);
  await waitFor(() => expect(screen.getByRole('button', { name: 'Send' })).toHaveProperty('disabled', false));
  fireEvent.click(screen.getByRole('button', { name: 'Send' }));
}

/** Waits until the last of `count` answers is complete. */
export async function answered(count = 1): Promise<void> {
  await waitFor(() => expect(within(log()).getAllByText(/tokens\/s/)).toHaveLength(count), { timeout: 4000 });
}
