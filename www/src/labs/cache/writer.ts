/**
 * Texts for the prepared prompts, of about as many tokens as asked. They are numbered sentences rather than one sentence again
 * and again: a repeated text would look like a prefix where it is none.
 */
import { encodePrompt, type PromptEngine } from '../shared/prompt';

export type Topic = 'rules' | 'article' | 'question' | 'answer';

const ITEMS = ['lamp', 'kettle', 'chair', 'printer', 'tent', 'radio', 'bicycle', 'clock', 'camera', 'desk'];
const PLACES = ['Oslo', 'Lyon', 'Porto', 'Graz', 'Turin', 'Leeds', 'Ghent', 'Malmo'];

function pick(list: readonly string[], index: number): string {
  return list[index % list.length] ?? '';
}

/** Sentence `index` of a topic. */
function sentence(topic: Topic, index: number): string {
  const [item, place] = [pick(ITEMS, index), pick(PLACES, index * 3 + 1)];
  switch (topic) {
    case 'rules':
      return `Rule ${index + 1}: if a customer asks about a ${item}, be brief and name the shop in ${place}. `;
    case 'article':
      return `Article ${index + 101}: the ${item} is sent from ${place} within ${(index % 9) + 2} days and has ${(index % 4) + 1} years of warranty. `;
    case 'question':
      return `My ${item} from ${place} came on day ${index + 3}. `;
    case 'answer':
      return `The ${item} is kept in ${place} for you until day ${index + 5}. `;
  }
}

/** Writes texts for one model: how many sentences make so many tokens depends on its tokenizer. */
export class Writer {
  private constructor(private readonly tokensPerSentence: Readonly<Record<Topic, number>>) {}

  static async for(engine: PromptEngine): Promise<Writer> {
    const topics: readonly Topic[] = ['rules', 'article', 'question', 'answer'];
    const num = ITEMS.length;
    const lengths = await Promise.all(
      topics.map(async (topic) => {
        const text = Array.from({ length: num }, (_, index) => sentence(topic, index)).join('');
        return [topic, (await encodePrompt(engine, text)).length / num] as const;
      }),
    );
    return new Writer(Object.fromEntries(lengths) as Record<Topic, number>);
  }

  /** About `tokens` tokens, a sentence at least, beginning with sentence `from`. */
  text(topic: Topic, tokens: number, from = 0): string {
    const num = Math.max(1, Math.floor(tokens / this.tokensPerSentence[topic]));
    return Array.from({ length: num }, (_, index) => sentence(topic, from + index))
      .join('')
      .trim();
  }
}
