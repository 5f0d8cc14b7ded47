import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createBatcher } from '../src/frame';

const page = { visibilityState: 'visible' } as { visibilityState: DocumentVisibilityState };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'requestAnimationFrame', 'cancelAnimationFrame'] });
  page.visibilityState = 'visible';
});
afterEach(() => vi.useRealTimers());

it('makes one call of many requests within a frame', () => {
  const flush = vi.fn();
  const batcher = createBatcher(flush, page as Document);
  for (let i = 0; i < 10; i += 1) batcher.schedule();
  expect(flush).not.toHaveBeenCalled();
  vi.advanceTimersByTime(20);
  expect(flush).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1000);
  expect(flush).toHaveBeenCalledTimes(1);
});

it('waits for nothing while the page is hidden', () => {
  const flush = vi.fn();
  const batcher = createBatcher(flush, page as Document);
  page.visibilityState = 'hidden';
  batcher.schedule();
  batcher.schedule();
  expect(flush).toHaveBeenCalledTimes(2);
});

it('gives up on a frame that never comes', () => {
  vi.stubGlobal('requestAnimationFrame', () => 1);
  const flush = vi.fn();
  createBatcher(flush, page as Document).schedule();
  vi.advanceTimersByTime(300);
  expect(flush).toHaveBeenCalledTimes(1);
  vi.unstubAllGlobals();
});

it('catches up when the page was hidden while a frame was pending', () => {
  const flush = vi.fn();
  const batcher = createBatcher(flush, page as Document);
  batcher.schedule();
  page.visibilityState = 'hidden';
  batcher.schedule();
  expect(flush).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1000);
  expect(flush).toHaveBeenCalledTimes(1);
});

it('flushes at once when asked, and only if something is pending', () => {
  const flush = vi.fn();
  const batcher = createBatcher(flush, page as Document);
  batcher.flush();
  expect(flush).not.toHaveBeenCalled();
  batcher.schedule();
  batcher.flush();
  vi.advanceTimersByTime(1000);
  expect(flush).toHaveBeenCalledTimes(1);
});
