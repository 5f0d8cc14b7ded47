/** Full-text search of passages, in memory. The same text in several documents is found once. */
import MiniSearch from 'minisearch';
import type { PassageRecord } from './records';
import { isWide, queryTermsOf, termsOf } from './tokenizer';

/** A passage that was found. */
export interface Hit {
  readonly id: string;
  /** Comparable within one search only. */
  readonly score: number;
}

/** A hit worth less than this share of the best one is not about the question. */
const LEAST_SHARE = 0.2;
/** Passages that are indexed between two breaths of the page. */
const SLICE = 16;

type Indexed = Pick<PassageRecord, 'id' | 'title' | 'path' | 'text' | 'hash'>;

export class PassageIndex {
  private readonly hashes = new Set<string>();
  private readonly index = new MiniSearch<Indexed>({
    fields: ['title', 'path', 'text'],
    extractField: (passage, field) => (field === 'path' ? passage.path.join('\n') : passage[field as 'text']),
    tokenize: (text) => termsOf(text),
    // The terms are folded already.
    processTerm: (term) => term,
    searchOptions: {
      boost: { title: 2, path: 1.5 },
      tokenize: (text) => queryTermsOf(text),
      prefix: (term) => term.length >= 4 && !isWide(term),
      fuzzy: (term) => (term.length >= 5 && !isWide(term) ? 0.2 : false),
    },
  });

  /** Passages in the index. */
  get size(): number {
    return this.index.documentCount;
  }

  /** Adds passages, a few at a time, so that the page goes on; a text that is there already is left out. */
  async add(passages: readonly Indexed[]): Promise<void> {
    for (let at = 0; at < passages.length; at += SLICE) {
      for (const passage of passages.slice(at, at + SLICE)) {
        if (this.hashes.has(passage.hash)) continue;
        this.hashes.add(passage.hash);
        this.index.add(passage);
      }
      if (at + SLICE < passages.length) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }

  /** The passages that fit best, the best one first. */
  search(question: string, limit: number): Hit[] {
    const found = this.index.search(question);
    const least = (found[0]?.score ?? 0) * LEAST_SHARE;
    return found
      .filter(({ score }) => score >= least)
      .slice(0, limit)
      .map(({ id, score }) => ({ id: String(id), score }));
  }
}
