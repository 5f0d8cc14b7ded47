/** The page's one library of documents, and how it measures: in the tokens of the model that is loaded. */
import type { LoadedModel } from '../state/engine';
import type { Session } from '../state/session';
import { DocumentLibrary, type Sizing } from './library';
import { type Measure, measureCharacters } from './split';

/** Largest passage: four of them leave most of a small context free. */
export const PASSAGE_TOKENS = 200;
/** About as much English as that. */
export const PASSAGE_CHARACTERS = 800;

const libraries = new WeakMap<Session, DocumentLibrary>();

export function documentsOf(session: Session): DocumentLibrary {
  const library = libraries.get(session) ?? new DocumentLibrary();
  libraries.set(session, library);
  return library;
}

/** Texts that are counted at a time. */
const SLICE = 64;

/** Counts with a model's tokenizer. */
export function measureTokens(engine: Pick<LoadedModel['engine'], 'tokenize'>): Measure {
  return async (texts) => {
    const sizes: number[] = [];
    for (let at = 0; at < texts.length; at += SLICE) {
      const ids = await Promise.all(texts.slice(at, at + SLICE).map((text) => engine.tokenize(text)));
      sizes.push(...ids.map(({ length }) => length));
    }
    return sizes;
  };
}

/** How documents are split now. */
export function sizingOf(session: Session): Sizing {
  const engine = session.engine.peek();
  return engine
    ? { measure: measureTokens(engine), unit: 'tokens', limit: PASSAGE_TOKENS }
    : { measure: measureCharacters, unit: 'characters', limit: PASSAGE_CHARACTERS };
}
