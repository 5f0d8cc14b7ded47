/** One request, answered and measured. */
import type { CacheMiss, ChatCompletionCreateParamsNonStreaming, Engine, RequestCacheOptions } from 'pagewise';

/** What the labs need of an engine to ask it. */
export type AskingEngine = Pick<Engine, 'chat'>;

/** How a request went. */
export interface Measured {
  /** The `id` that traces and blocks call it by. */
  readonly id: string;
  readonly text: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  readonly ttftMs: number;
  /** Null for an answer of one token. */
  readonly tpotMs: number | null;
  readonly miss: CacheMiss | null;
}

/** Asks greedily, so that the same prompt has the same answer. */
export async function ask(
  engine: AskingEngine,
  messages: ChatCompletionCreateParamsNonStreaming['messages'],
  { maxTokens, cache, signal }: { maxTokens: number; cache: RequestCacheOptions; signal: AbortSignal },
): Promise<Measured> {
  const request = { messages, temperature: 0, max_tokens: maxTokens, cache };
  const { id, choices, usage, timings, cache: report } = await engine.chat.completions.create(request, { signal });
  return {
    id,
    text: choices[0]?.message.content ?? '',
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details.cached_tokens,
    generatedTokens: usage.completion_tokens,
    ttftMs: timings.ttft_ms,
    tpotMs: timings.tpot_ms,
    miss: report.miss,
  };
}
