/**
 * Batches screen updates: at most one per animation frame while the page is visible, and at once when it is hidden.
 * A hidden page gets no animation frames and its timers are throttled, so waiting for either would make a background
 * chat look stuck.
 */

/** Longest wait for an animation frame; a visible page that is not being drawn (covered window) still updates. */
const FRAME_TIMEOUT_MS = 250;

export interface Batcher {
  /** Asks for one call of the flush function, soon. Any number of requests before it make one call. */
  schedule(): void;
  /** Flushes now if anything is pending. */
  flush(): void;
}

export function createBatcher(flush: () => void, page: Document = document): Batcher {
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pending = false;

  const run = (): void => {
    if (!pending) return;
    pending = false;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    flush();
  };

  return {
    schedule() {
      const hidden = page.visibilityState === 'hidden';
      if (hidden) {
        pending = true;
        run();
        return;
      }
      if (pending) return;
      pending = true;
      frame = requestAnimationFrame(run);
      timer = setTimeout(run, FRAME_TIMEOUT_MS);
    },
    flush: run,
  };
}
