/** What jsdom lacks and the page uses. */
import { cleanup } from '@testing-library/preact';
import { afterEach } from 'vitest';

afterEach(() => {
  cleanup();
  localStorage.clear();
});

window.matchMedia ??= (query: string) => ({ matches: false, media: query }) as MediaQueryList;

HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
  this.open = true;
};

Object.defineProperty(window, 'isSecureContext', { value: true, configurable: true, writable: true });
