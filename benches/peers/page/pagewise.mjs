// Pagewise in a page, through its npm package.
import { Engine } from '/js/dist/index.js';

const FORBIDDEN = -100;

/** Loads the model; answers what does not change between runs. */
export async function load({ url, contextLength, endIds }) {
  const engine = await Engine.load(url, { contextLength });
  const { kv } = engine.info;

  /** One greedy answer of exactly `decodeTokens + 1` tokens: the first one belongs to the prefill. */
  async function measure({ ids, decodeTokens }) {
    const { choices, usage, timings } = await engine.completions.create({
      prompt: ids,
      max_tokens: decodeTokens + 1,
      temperature: 0,
      // An answer that ended early would measure fewer steps.
      logit_bias: Object.fromEntries(endIds.map((id) => [id, FORBIDDEN])),
    });
    if (usage.completion_tokens !== decodeTokens + 1)
      throw new Error(`${usage.completion_tokens} tokens generated, ${decodeTokens + 1} asked for`);
    return {
      prefill: timings.prefill_tokens_per_s,
      decode: timings.decode_tokens_per_s,
      answer: await engine.tokenize(choices[0].text),
    };
  }

  globalThis.contestant = { measure };
  return { kv };
}
