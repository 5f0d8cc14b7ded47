/** Tokens in colours: what kind each is, and which are worth showing. */

/** Tokens of a block of the KV cache. */
export const BLOCK_SIZE = 16;

export type TokenKind = 'reused' | 'computed' | 'generated' | 'other';

/** Neighbours of the same kind. */
export interface TokenRun {
  readonly kind: TokenKind;
  /** Of its first token. */
  readonly start: number;
  readonly texts: readonly string[];
}

/** What is shown of a run: tokens, or how many are left out. */
export type ShownPart =
  | { readonly kind: TokenKind; readonly start: number; readonly texts: readonly string[] }
  | { readonly kind: 'gap'; readonly of: TokenKind; readonly count: number };

/** A prompt and its answer by kinds: `cached` tokens were reused, the prompt's others computed, the rest generated. */
export function runsOf(pieces: readonly string[], cached: number, numPrompt: number): TokenRun[] {
  const ends: [TokenKind, number, number][] = [
    ['reused', 0, cached],
    ['computed', cached, numPrompt],
    ['generated', numPrompt, pieces.length],
  ];
  return ends
    .filter(([, start, end]) => end > start)
    .map(([kind, start, end]) => ({ kind, start, texts: pieces.slice(start, end) }));
}

/** Leaves out the middle of long runs, so that where one ends and the next begins can be seen. */
export function elide(runs: readonly TokenRun[], keep: number): ShownPart[] {
  return runs.flatMap((run): ShownPart[] => {
    const { kind, start, texts } = run;
    if (texts.length <= 2 * keep + 8) return [run];
    const end = texts.length - keep;
    return [
      { kind, start, texts: texts.slice(0, keep) },
      { kind: 'gap', of: kind, count: end - keep },
      { kind, start: start + end, texts: texts.slice(end) },
    ];
  });
}
