/**
 * Reading a source to its end whether somebody reads or not: what keeps it open ends with it, not with a reader who may never come.
 */

/** What has come, for one reader. */
export interface ReadAhead<T> {
  /** To be read once. */
  values: AsyncGenerator<T, undefined>;
  /** Gives it up: what was not read is dropped. */
  cancel(): void;
}

/** Who gives up a source. */
export interface GivingUp {
  /** Ends the source early: it throws. */
  stop(): void;
  /** Whether somebody has, so that nobody wants what was not read. */
  readonly isGivenUp: boolean;
}

/** Begins to read. */
export function readAhead<T>(source: AsyncIterable<T>, givingUp: GivingUp): ReadAhead<T> {
  const ready: T[] = [];
  let end: { error?: unknown } | undefined;
  let wake = (): void => undefined;
  const pump = async (): Promise<void> => {
    try {
      for await (const value of source) {
        ready.push(value);
        wake();
      }
      end = {};
    } catch (error) {
      if (givingUp.isGivenUp) ready.length = 0;
      end = { error };
    }
    wake();
  };
  void pump();
  async function* read(): AsyncGenerator<T, undefined> {
    try {
      for (;;) {
        while (ready.length > 0) yield ready.shift() as T;
        if (end !== undefined) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      if ('error' in end) throw end.error;
      return undefined;
    } finally {
      cancel();
    }
  }
  const cancel = (): void => {
    if (end === undefined) givingUp.stop();
  };
  return { values: read(), cancel };
}
