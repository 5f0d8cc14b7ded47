/** A prompt as the engine sees it: its text, its token ids, and what each id reads as. */
import type { ChatMessage, Engine } from 'pagewise';

/** A prompt that was rendered and encoded. */
export interface RenderedPrompt {
  readonly text: string;
  readonly ids: readonly number[];
}

/** What the labs need of an engine to look at prompts; the engine itself, or a stand-in in tests. */
export type PromptEngine = Pick<Engine, 'applyTemplate' | 'tokenize' | 'detokenize'>;

/** Renders messages with the model's template and encodes them, as a chat request does that continues no earlier answer. */
export async function renderPrompt(engine: PromptEngine, messages: readonly ChatMessage[]): Promise<RenderedPrompt> {
  const text = await engine.applyTemplate(messages);
  return { text, ids: await encodePrompt(engine, text) };
}

/** Encodes a prompt's text: a model that wants a first token of its own gets it, once. */
export async function encodePrompt(engine: PromptEngine, text: string): Promise<number[]> {
  const [plain, special] = await Promise.all([
    engine.tokenize(text, { parseSpecial: true }),
    engine.tokenize(text, { addSpecial: true, parseSpecial: true }),
  ]);
  const first = special[0];
  return first === undefined || first === plain[0] ? plain : [first, ...plain];
}

const pieces = new WeakMap<object, Map<number, string>>();

/** What each of the ids reads as, by itself; control tokens are written out. */
export async function piecesOf(engine: PromptEngine, ids: readonly number[]): Promise<string[]> {
  const known = pieces.get(engine) ?? new Map<number, string>();
  pieces.set(engine, known);
  const missing = [...new Set(ids)].filter((id) => !known.has(id));
  const texts = await Promise.all(missing.map((id) => engine.detokenize([id], { skipSpecial: false })));
  for (const [index, id] of missing.entries()) known.set(id, texts[index] ?? '');
  return ids.map((id) => known.get(id) ?? '');
}

/** Ids that two lists have in common at their fronts. */
export function commonLength(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}
