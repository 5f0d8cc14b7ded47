/**
 * Which messages are near the part of the conversation that is seen. Far ones are only their text: a conversation of a
 * thousand messages costs no more than what is looked at, and the browser still finds their words. The browser watches groups
 * of messages; those of a group that comes near are made whole one by one, in the time that drawing leaves.
 */
import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** How far above and below counts as near. */
const MARGIN_PX = 1500;
/** Messages of a group. */
const GROUP_SIZE = 8;
/** An idle moment that is shorter is left alone. */
const LEAST_IDLE_MS = 5;
/** Longest wait for an idle moment. */
const TIMEOUT_MS = 100;

/** Splits messages into groups of neighbours, which stay the same while messages are added at the end. */
export function groupsOf<Message>(messages: readonly Message[]): Message[][] {
  const groups: Message[][] = [];
  for (let start = 0; start < messages.length; start += GROUP_SIZE)
    groups.push(messages.slice(start, start + GROUP_SIZE));
  return groups;
}

/** Which messages of a group are whole: so many, counted from the end that was come near to. */
export interface Wholeness {
  readonly num: number;
  readonly isFromEnd: boolean;
}

const ALL: Wholeness = { num: Number.POSITIVE_INFINITY, isFromEnd: false };
const NONE: Wholeness = { num: 0, isFromEnd: false };

/** Whether message `index` of `count` is whole. */
export function isWhole({ num, isFromEnd }: Wholeness, index: number, count: number): boolean {
  return isFromEnd ? index >= count - num : index < num;
}

const observers = new WeakMap<Element, IntersectionObserver>();
const listeners = new WeakMap<Element, (isAbove: boolean) => void>();

function observerOf(scroller: Element): IntersectionObserver {
  const known = observers.get(scroller);
  if (known) return known;
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting, boundingClientRect, rootBounds } of entries) {
        // What is above is come to from below, its last message first.
        const middle = rootBounds ? (rootBounds.top + rootBounds.bottom) / 2 : 0;
        if (isIntersecting) listeners.get(target)?.(boundingClientRect.bottom < middle);
      }
    },
    { root: scroller, rootMargin: `${MARGIN_PX}px 0px` },
  );
  observers.set(scroller, observer);
  return observer;
}

/** Which messages of a group have been near; once one was, it stays so. `isSure` skips the question. */
export function useNear(element: RefObject<Element>, count: number, isSure: boolean): Wholeness {
  const [wholeness, setWholeness] = useState(isSure || typeof IntersectionObserver === 'undefined' ? ALL : NONE);
  const [isFromEnd, setFromEnd] = useState<boolean | null>(null);
  const { num } = wholeness;
  useEffect(() => {
    const target = element.current;
    const scroller = target?.closest('[role=log]');
    if (wholeness === ALL || isFromEnd !== null || !target || !scroller) return;
    const observer = observerOf(scroller);
    listeners.set(target, setFromEnd);
    observer.observe(target);
    return () => observer.unobserve(target);
  }, [wholeness, isFromEnd]);
  useEffect(() => {
    if (isFromEnd === null || wholeness === ALL) return;
    return onceIdle(() => setWholeness(num + 1 < count ? { num: num + 1, isFromEnd } : ALL));
  }, [isFromEnd, wholeness, count]);
  return isSure ? ALL : wholeness;
}

const waiting = new Set<() => void>();
let isAsked = false;

/** Calls `work` when the browser has time for it; the returned function takes it back. */
function onceIdle(work: () => void): () => void {
  waiting.add(work);
  if (!isAsked) ask();
  return () => waiting.delete(work);
}

function ask(): void {
  isAsked = true;
  // Without it (Safari) each piece is a task of its own.
  if (typeof requestIdleCallback === 'function') requestIdleCallback(run, { timeout: TIMEOUT_MS });
  else setTimeout(() => run());
}

function run(deadline?: IdleDeadline): void {
  isAsked = false;
  const hasTime = !deadline || deadline.didTimeout || deadline.timeRemaining() >= LEAST_IDLE_MS;
  const [work] = waiting;
  if (work && hasTime) {
    waiting.delete(work);
    work();
  }
  if (waiting.size > 0) ask();
}
