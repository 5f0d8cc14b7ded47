/** What jsdom lacks and the page uses. */
import 'fake-indexeddb/auto';
import { cleanup, configure } from '@testing-library/preact';
import { afterEach } from 'vitest';

// Looking for roles is slow in jsdom, and a busy machine is slower still.
configure({ asyncUtilTimeout: 4000 });

afterEach(() => {
  cleanup();
  localStorage.clear();
  history.replaceState(null, '', '#');
  dispatchEvent(new HashChangeEvent('hashchange'));
});

window.matchMedia ??= (query: string) =>
  Object.assign(new EventTarget(), { matches: false, media: query }) as MediaQueryList;

HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
  this.open = true;
};

/** jsdom's files can only be read by its own reader. */
function read(file: Blob): Promise<ArrayBuffer> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as ArrayBuffer);
    reader.onerror = reject;
    reader.readAsArrayBuffer(file);
  });
}
Blob.prototype.arrayBuffer ??= function (this: Blob) {
  return read(this);
};
Blob.prototype.text ??= async function (this: Blob) {
  return new TextDecoder().decode(new Uint8Array(await read(this)));
};

Object.defineProperty(window, 'isSecureContext', { value: true, configurable: true, writable: true });
