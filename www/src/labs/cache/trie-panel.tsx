/** The trie of prefixes, as a list that branches. */
import type { JSX } from 'preact';
import { Panel } from '../../ui/kit';
import { type CacheLab, type CacheState, SHOWN_TOKENS } from './lab';
import { letter } from './names';
import type { ExperimentRun } from './run';
import { t } from './text';
import type { TrieStretch } from './trie';

export function TriePanel({ lab }: { lab: CacheLab }): JSX.Element | null {
  const state = lab.state.value;
  if (!state) return null;
  return (
    <Panel title={t('trie')} lead={t('trieLead')}>
      {state.trie.length === 0 ? (
        <p class="help">{t('trieEmpty')}</p>
      ) : (
        <ul class="trie">
          {byOwner(state.trie, [], lab.run.value).map((one) => (
            <Stretch key={one.key} stretch={one} before={[]} state={state} run={lab.run.value} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

interface StretchProps {
  readonly stretch: TrieStretch;
  /** All tokens in front of it. */
  readonly before: readonly number[];
  readonly state: CacheState;
  readonly run: ExperimentRun | null;
}

function Stretch({ stretch, before, state, run }: StretchProps): JSX.Element {
  const { tokens, start, numBlocks, children, isPinned, numHits } = stretch;
  const path = [...before, ...tokens];
  const owners = ownersOf(stretch, before, run).map(letter);
  const read = (ids: readonly number[]): string => ids.map((id) => state.pieces.get(id) ?? '').join('');
  const isShort = tokens.length <= 2 * SHOWN_TOKENS;
  const text = isShort ? read(tokens) : `${read(tokens.slice(0, SHOWN_TOKENS))} … ${read(tokens.slice(-SHOWN_TOKENS))}`;
  return (
    <li>
      <div class={children.length > 0 ? 'stretch shared-stretch' : 'stretch'}>
        <span class="owners">{owners.join(' ')}</span>
        <code>{text.replace(/\n/g, '⏎')}</code>
        <span class="stretch-note">
          {t('stretch', { count: numBlocks, start })}
          {numHits > 0 && ` · ${t('hits', { count: numHits })}`}
          {isPinned && ` · ${t('pinned')}`}
        </span>
      </div>
      {children.length > 0 && (
        <ul>
          {byOwner(children, path, run).map((child) => (
            <Stretch key={child.key} stretch={child} before={path} state={state} run={run} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** The prompts that a stretch is part of. */
function ownersOf({ tokens, start }: TrieStretch, before: readonly number[], run: ExperimentRun | null): number[] {
  const path = [...before, ...tokens];
  return (run?.requests ?? []).flatMap(({ ids }, index) => (owns(ids, path, start) ? [index] : []));
}

/** In the order in which the prompts were sent, not that of the cache's map. */
function byOwner(
  all: readonly TrieStretch[],
  before: readonly number[],
  run: ExperimentRun | null,
): readonly TrieStretch[] {
  const first = (one: TrieStretch): number => ownersOf(one, before, run)[0] ?? Number.POSITIVE_INFINITY;
  const keyed = all.map((one) => ({ one, at: first(one) }));
  return keyed.sort((a, b) => (a.at === b.at ? 0 : a.at - b.at)).map(({ one }) => one);
}

/** Whether a prompt lies on a path: all in front of `start` is its own, and the stretch begins as it goes on. */
function owns(ids: readonly number[], path: readonly number[], start: number): boolean {
  if (ids.length <= start) return false;
  const end = Math.min(path.length, ids.length);
  for (let at = 0; at < end; at += 1) if (ids[at] !== path[at]) return false;
  return true;
}
