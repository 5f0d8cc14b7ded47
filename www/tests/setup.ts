/** What jsdom lacks and the page uses. */
import { cleanup, configure } from '@testing-library/preact';
import { afterEach } from 'vitest';

// Looking for roles is slow in jsdom, and a busy machine is slower still.
configure({ asyncUtilTimeout: 4000 });

afterEach(() => {
  cleanup();
  localStorage.clear();
});

window.matchMedia ??= (query: string) => ({ matches: false, media: query }) as MediaQueryList;

HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
  this.open = true;
};

Object.defineProperty(window, 'isSecureContext', { value: true, configurable: true, writable: true });
