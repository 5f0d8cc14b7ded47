/** What the experiments ask at first: what the sample answers, where it is among the documents, else what these documents are about. */
import type { DocumentLibrary } from '../../documents/library';
import type { DocumentRecord, PassageRecord } from '../../documents/records';
import { t } from '../../documents/text';
import { LANGS, type Lang } from '../../i18n';
import { type Sample, sampleFor } from './sample';

/** Questions that are made of documents, as many as the sample has. */
const NUM_DERIVED = 3;
/** Words of a passage, or characters where there are no spaces, that stand for it where it has no heading of its own. */
const [TOPIC_WORDS, TOPIC_CHARACTERS] = [6, 40];

/** Whether a document is the sample as it was added here. */
export function isSample({ name, bytes }: Pick<DocumentRecord, 'name' | 'bytes'>, sample: Sample): boolean {
  return name === sample.name && bytes === new TextEncoder().encode(sample.text).length;
}

/** The sample among the documents, the one in `language` first; null where there is none. */
export function sampleAmong(documents: readonly DocumentRecord[], language: Lang): Sample | null {
  const samples = [language, ...LANGS].map(sampleFor);
  return samples.find((sample) => documents.some((document) => isSample(document, sample))) ?? null;
}

/** One question for each of the first headings. A heading that asks is a question already. */
export function questionsAbout(passages: readonly Pick<PassageRecord, 'path' | 'text'>[]): string[] {
  const topics = new Set<string>();
  for (const { path, text } of passages) {
    topics.add(path.at(-1) ?? beginning(text));
    if (topics.size === NUM_DERIVED) break;
  }
  return [...topics].map((topic) => (/[?？]$/.test(topic) ? topic : t('askAbout', { topic })));
}

function beginning(text: string): string {
  return text.trim().split(/\s+/).slice(0, TOPIC_WORDS).join(' ').slice(0, TOPIC_CHARACTERS);
}

/** The questions for a library as it is. */
export async function defaultQuestions(library: DocumentLibrary, language: Lang): Promise<readonly string[]> {
  const documents = library.list.peek() ?? [];
  const sample = sampleAmong(documents, language);
  if (sample) return sample.questions;
  const passages: PassageRecord[] = [];
  for (const { id } of documents) {
    passages.push(...(await library.passagesOf(id)));
    if (passages.length >= 10 * NUM_DERIVED) break;
  }
  return questionsAbout(passages);
}
