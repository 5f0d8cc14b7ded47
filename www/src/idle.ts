/** When the page has been drawn and has nothing better to do. */

/** Longest wait: a page that is never idle does the work all the same. */
const TIMEOUT_MS = 1000;

/** Resolves once the page is idle; at once, in a task of its own, where the browser cannot say. */
export function whenIdle(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof requestIdleCallback === 'function') requestIdleCallback(() => resolve(), { timeout: TIMEOUT_MS });
    else setTimeout(resolve);
  });
}

/** Resolves in a new task, so that the browser can draw and answer input in between. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}
