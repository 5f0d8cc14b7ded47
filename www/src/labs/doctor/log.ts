/** A log of requests: each is compared with the earlier one that it is most like, and the causes are added up. */
import { type ExplainablePrompt, explainMiss, type MissCause, type MissExplanation } from 'pagewise';
import type { LogEntry } from './parse';

/** A request and what it was compared with. */
export interface LogFinding {
  readonly line: number;
  /** The line of the earlier one. */
  readonly against: number;
  readonly found: MissExplanation;
}

/** A cause, over all requests. */
export interface CauseSum {
  readonly cause: MissCause;
  readonly count: number;
  /** Characters that could have been reused and were not. */
  readonly lost: number;
  /** An example: the first request with it. */
  readonly example: LogFinding;
}

export interface LogReport {
  readonly findings: readonly LogFinding[];
  /** Misses by cause, the most expensive first. */
  readonly causes: readonly CauseSum[];
  /** Characters of all prompts, and those that earlier prompts began with. */
  readonly total: number;
  readonly reused: number;
}

/** Earlier requests that one is compared with, at most: what a cache would still have. */
const MOST_EARLIER = 64;

/** Compares them; `onProgress` gets how many are done. */
export async function examineLog(
  entries: readonly LogEntry[],
  signal: AbortSignal,
  onProgress: (done: number) => void = () => undefined,
): Promise<LogReport> {
  const findings: LogFinding[] = [];
  const texts = entries.map(({ prompt }) => comparable(prompt));
  for (const [index, { line, prompt }] of entries.entries()) {
    signal.throwIfAborted();
    const earlier = mostAlike(texts, index);
    const other = earlier === null ? null : entries[earlier];
    if (other) findings.push({ line, against: other.line, found: await explainMiss(other.prompt, prompt) });
    if (index % 50 === 49) await new Promise((resolve) => setTimeout(resolve));
    onProgress(index + 1);
  }
  const total = texts.reduce((sum, text) => sum + text.length, 0);
  const reused = findings.reduce((sum, { found }) => sum + found.size.shared, 0);
  return { findings, causes: sumsOf(findings), total, reused };
}

/** Requests as texts that begin alike where their prompts do: tools in front, then the messages. */
function comparable(prompt: ExplainablePrompt): string {
  if (typeof prompt === 'string') return prompt;
  if (Array.isArray(prompt)) return JSON.stringify(prompt);
  const { tools, system, messages, prompt: text } = prompt as Exclude<typeof prompt, readonly object[]>;
  return [tools && JSON.stringify(tools), system && JSON.stringify(system), messages && JSON.stringify(messages), text]
    .filter(Boolean)
    .join('\n');
}

/** The latest of those that have the longest beginning in common. */
function mostAlike(texts: readonly string[], index: number): number | null {
  let [best, most]: [number | null, number] = [null, -1];
  for (let other = index - 1; other >= Math.max(0, index - MOST_EARLIER); other -= 1) {
    const common = commonPrefix(texts[index] ?? '', texts[other] ?? '');
    if (common > most) [best, most] = [other, common];
  }
  return best;
}

function commonPrefix(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

function sumsOf(findings: readonly LogFinding[]): CauseSum[] {
  const sums = new Map<MissCause, CauseSum>();
  for (const finding of findings) {
    const { miss, cause, size } = finding.found;
    // Another conversation is nobody's fault.
    if (!miss || cause === 'new_conversation') continue;
    const sum = sums.get(cause) ?? { cause, count: 0, lost: 0, example: finding };
    sums.set(cause, { ...sum, count: sum.count + 1, lost: sum.lost + size.lost });
  }
  return [...sums.values()].sort((a, b) => b.lost - a.lost);
}
