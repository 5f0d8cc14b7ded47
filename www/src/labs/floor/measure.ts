/** Times of real answers: between tokens, at several lengths of context and several at once, streamed and not. */
import type { ChatMessage, Engine } from 'pagewise';

/** What is needed of an engine. */
export type TimedEngine = Pick<Engine, 'completions' | 'chat' | 'tokenize' | 'info'>;

/** Answers that are drawn at once in the comparison. */
export const BATCHES = [1, 2, 4] as const;

/** Lengths of context that are measured. */
export function contextsFor(contextLength: number, isSoftware: boolean): number[] {
  const most = Math.min(contextLength - ANSWER_TOKENS - 16, isSoftware ? 256 : 8192);
  const contexts = [64, 256, 1024, 2048, 4096, 8192].filter((tokens) => tokens <= most);
  return contexts.length > 0 ? contexts : [Math.max(16, most)];
}

const ANSWER_TOKENS = 17;

/**
 * Mean milliseconds between the tokens of `batch` answers to one prompt of `contextTokens`; null where the clock was too coarse
 * to tell. The prompt is computed once, and its keys and values are read for each answer.
 */
export async function tokenMs(
  engine: TimedEngine,
  contextTokens: number,
  batch: number,
  signal: AbortSignal,
): Promise<number | null> {
  const letters = await lettersOf(engine);
  const prompt = Array.from({ length: contextTokens }, (_, index) => letters[index % letters.length] ?? 0);
  const { timings } = await engine.completions.create(
    {
      prompt,
      n: batch,
      max_tokens: ANSWER_TOKENS,
      // Only letters, so that no answer ends early; drawn, so that the answers part.
      allowed_token_ids: letters,
      temperature: 1,
      seed: 1,
      cache: { enabled: false },
    },
    { signal },
  );
  return timings?.tpot_ms || null;
}

/** When the visitor sees something. */
export interface Seen {
  readonly firstMs: number;
  readonly allMs: number;
}

/** The same question twice: with the answer streamed, and in one piece. */
export async function streaming(
  engine: TimedEngine,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
): Promise<{ streamed: Seen; whole: Seen }> {
  const request = { messages, temperature: 0, max_tokens: 4 * ANSWER_TOKENS, cache: { enabled: false } };
  const startMs = performance.now();
  let firstMs: number | null = null;
  for await (const chunk of await engine.chat.completions.create({ ...request, stream: true }, { signal })) {
    if (chunk.choices[0]?.delta.content) firstMs ??= performance.now() - startMs;
  }
  const streamedMs = performance.now() - startMs;
  const againMs = performance.now();
  await engine.chat.completions.create(request, { signal });
  const wholeMs = performance.now() - againMs;
  return {
    streamed: { firstMs: firstMs ?? streamedMs, allMs: streamedMs },
    whole: { firstMs: wholeMs, allMs: wholeMs },
  };
}

async function lettersOf(engine: Pick<Engine, 'tokenize'>): Promise<number[]> {
  const lists = await Promise.all([...'abcdefghijklmnop'].map((letter) => engine.tokenize(letter)));
  return [...new Set(lists.map((list) => list.at(-1) ?? 0))];
}
