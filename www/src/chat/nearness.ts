/**
 * Which messages are near the part of the conversation that is seen. Far ones are only their text: a conversation of a
 * thousand messages costs no more than what is looked at, and the browser still finds their words.
 */
import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** How far above and below counts as near. */
const MARGIN_PX = 1500;

const observers = new WeakMap<Element, IntersectionObserver>();
const listeners = new WeakMap<Element, () => void>();

function observerOf(scroller: Element): IntersectionObserver {
  const known = observers.get(scroller);
  if (known) return known;
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) listeners.get(target)?.();
    },
    { root: scroller, rootMargin: `${MARGIN_PX}px 0px` },
  );
  observers.set(scroller, observer);
  return observer;
}

/** Whether an element has been near; once it was, it stays so. `isSure` skips the question. */
export function useNear(element: RefObject<Element>, isSure: boolean): boolean {
  const [isNear, setNear] = useState(isSure || typeof IntersectionObserver === 'undefined');
  useEffect(() => {
    const target = element.current;
    const scroller = target?.closest('[role=log]');
    if (isNear || !target || !scroller) return;
    const observer = observerOf(scroller);
    listeners.set(target, () => setNear(true));
    observer.observe(target);
    return () => observer.unobserve(target);
  }, [isNear]);
  return isNear || isSure;
}
