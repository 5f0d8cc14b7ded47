/** The passages behind an answer: what its numbers stand for, and the list of them below. */
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Chat } from '../chat/chat';
import { useChat } from '../chat/context';
import type { Message } from '../chat/thread';
import { lang } from '../i18n';
import { type CitationOptions, citedNumbers } from './citations';
import type { SourceRecord } from './source';
import { placeText, sourceLabel, t } from './source-text';
import './sources.css';

/** The passages that came with the question of an answer; undefined where none were looked for. */
function ownSources(chat: Chat, answer: Message): readonly SourceRecord[] | undefined {
  const question = answer.parent === null ? undefined : chat.thread.value.nodes.value.get(answer.parent);
  return question?.state.value.sources;
}

/** All passages that the model has read above an answer, by number. */
function sourcesAbove(chat: Chat, answer: Message): ReadonlyMap<number, SourceRecord> {
  const nodes = chat.thread.peek().nodes.peek();
  const sources = new Map<number, SourceRecord>();
  const seen = new Set<string>();
  for (let at = answer.parent; at !== null && !seen.has(at); at = nodes.get(at)?.parent ?? null) {
    seen.add(at);
    for (const source of nodes.get(at)?.state.peek().sources ?? []) sources.set(source.number, source);
  }
  return sources;
}

/** How to show the citations of an answer; null while it has no sources. */
export function useCitations(answer: Message): CitationOptions | null {
  const chat = useChat();
  const own = ownSources(chat, answer);
  const language = lang.value;
  return useMemo(() => {
    const sources = sourcesAbove(chat, answer);
    if (sources.size === 0) return null;
    const withSource = <Result,>(number: number, use: (source: SourceRecord) => Result): Result | null => {
      const source = sources.get(number);
      return source ? use(source) : null;
    };
    return {
      isKnown: (number) => sources.has(number),
      labelOf: (number) => withSource(number, sourceLabel) ?? String(number),
      onOpen: (number) => void withSource(number, (source) => chat.openSource(source)),
    };
  }, [chat, answer, own, language]);
}

/** The sources of an answer, those first that it cites; each opens its passage. */
export function AnswerSources({ message }: { message: Message }): JSX.Element | null {
  const chat = useChat();
  const own = ownSources(chat, message);
  const { text } = message.state.value;
  const all = useMemo(() => sourcesAbove(chat, message), [chat, message, own]);
  const cited = useMemo(() => citedNumbers(text, (number) => all.has(number)), [text, all]);
  if (own === undefined && cited.length === 0) return null;
  const shown = cited.flatMap((number) => all.get(number) ?? []);
  shown.push(...(own ?? []).filter(({ number }) => !cited.includes(number)));
  if (shown.length === 0) return <p class="note no-sources">{t('noneFound')}</p>;
  return (
    <section class="sources" aria-label={t('sources')}>
      <h3>{t('sources')}</h3>
      <ol>
        {shown.map((source) => (
          <SourceRow
            key={source.number}
            source={source}
            isCited={cited.includes(source.number)}
            onOpen={() => chat.openSource(source)}
          />
        ))}
      </ol>
    </section>
  );
}

interface SourceRowProps {
  readonly source: SourceRecord;
  readonly isCited: boolean;
  readonly onOpen: () => void;
}

function SourceRow({ source, isCited, onOpen }: SourceRowProps): JSX.Element {
  return (
    <li>
      <button
        type="button"
        class={isCited ? 'source' : 'source is-unused'}
        data-source={source.number}
        data-passage={source.passage}
        aria-haspopup="dialog"
        onClick={onOpen}
      >
        <span class="source-number">{source.number}</span>
        <span class="source-title">{source.title}</span>
        <span class="source-place">{placeText(source)}</span>
        <span class={isCited ? 'source-use is-cited' : 'source-use'}>{isCited ? t('cited') : t('notCited')}</span>
      </button>
    </li>
  );
}
