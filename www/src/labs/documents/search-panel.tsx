/** The search as the chat does it: what is found for a question, in which order. */
import type { JSX } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import { type SourceRecord, toSource } from '../../documents/source';
import { placeText } from '../../documents/source-text';
import { sizeText, t } from '../../documents/text';
import { lang } from '../../i18n';
import { formatFixed } from '../../i18n/format';
import { Panel } from '../../ui/kit';
import type { SearchState } from './lab';
import { sampleFor } from './sample';

/** Beginning of a passage that a hit shows, in characters. */
const SHOWN = 160;

interface SearchPanelProps {
  readonly search: SearchState;
  readonly onOpen: (source: SourceRecord) => void;
}

export function SearchPanel({ search, onOpen }: SearchPanelProps): JSX.Element {
  const id = useId();
  const found = search.found.value;
  const { list } = search.library;
  // What is found follows the library.
  useEffect(() => list.subscribe(() => void search.search(search.query.peek())), [search, list]);
  return (
    <Panel title={t('search')} lead={t('searchLead')}>
      <label class="field" for={id}>
        <span class="field-head">{t('question')}</span>
      </label>
      <input
        id={id}
        class="input"
        type="search"
        autocomplete="off"
        placeholder={sampleFor(lang.value).questions[0]}
        value={search.query.value}
        onInput={(event) => void search.search(event.currentTarget.value)}
      />
      <p class="help" role="status">
        {found !== null && t('hits', { count: found.length })}
      </p>
      {found !== null && found.length > 0 && (
        <ol class="hits">
          {found.map(({ passage, score }, index) => (
            <li key={passage.id}>
              <button
                type="button"
                class="hit"
                data-passage={passage.id}
                aria-haspopup="dialog"
                onClick={() => onOpen(toSource(passage, index + 1))}
              >
                <span class="source-number">{index + 1}</span>
                <span class="hit-title">{passage.title}</span>
                <span class="hit-score">{t('score', { score: formatFixed(score, 1) })}</span>
                <span class="hit-place">
                  {placeText(passage)} · {sizeText(passage.size, unitOf(search, passage.document))}
                </span>
                <span class="hit-text">{passage.text.slice(0, SHOWN)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

function unitOf({ library }: SearchState, document: string): 'tokens' | 'characters' {
  return library.list.value?.find(({ id }) => id === document)?.unit ?? 'tokens';
}
