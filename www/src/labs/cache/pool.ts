/** The block pool as it is drawn: what each block is, and whose. */
import type { CacheBlock, CachePrefix } from 'pagewise';

/** What a block is; `held` by one running request, `shared` by several, `cached` for later, `free`. */
export type BlockState = 'free' | 'held' | 'shared' | 'cached';

/** One block. */
export interface PoolCell {
  readonly block: number;
  readonly group: number;
  readonly state: BlockState;
  /** Indices of the requests whose prompts it holds a part of. */
  readonly owners: readonly number[];
  /** Whether it belongs to something that the lab did not ask, such as a conversation of the chat. */
  readonly isForeign: boolean;
  readonly isPinned: boolean;
  /** Tokens in it; 0 where nothing is cached in it. */
  readonly numTokens: number;
  readonly position: number | null;
}

/** The pool in numbers. */
export interface PoolSummary {
  readonly total: number;
  readonly free: number;
  readonly held: number;
  readonly shared: number;
  readonly cached: number;
  readonly pinned: number;
}

/** The blocks with their owners. `prompts` are the ids of the lab's requests, under `salt`. */
export function cellsOf(
  blocks: readonly CacheBlock[],
  prefixes: readonly CachePrefix[],
  prompts: readonly (readonly number[])[],
  salt: string,
): PoolCell[] {
  const owners = ownersOf(blocks, prefixes, prompts, salt);
  return blocks.map(({ block, group, numHolders, cached }) => {
    const own = cached ? (owners.get(cached.node) ?? []) : [];
    return {
      block,
      group,
      state: stateOf(numHolders, cached !== null),
      owners: own,
      isForeign: cached !== null && own.length === 0,
      isPinned: cached?.isPinned ?? false,
      numTokens: cached?.numTokens ?? 0,
      position: cached?.position ?? null,
    };
  });
}

function stateOf(numHolders: number, isCached: boolean): BlockState {
  if (numHolders > 1) return 'shared';
  if (numHolders === 1) return 'held';
  return isCached ? 'cached' : 'free';
}

/** Which prompts each node of the trie lies on. */
function ownersOf(
  blocks: readonly CacheBlock[],
  prefixes: readonly CachePrefix[],
  prompts: readonly (readonly number[])[],
  salt: string,
): Map<number, number[]> {
  const nodes = new Map(blocks.flatMap(({ cached }) => (cached ? [[cached.node, cached] as const] : [])));
  const owners = new Map<number, number[]>();
  for (const prefix of prefixes) {
    if (prefix.salt !== salt) continue;
    for (let node = nodes.get(prefix.node); node !== undefined; node = nodes.get(node.parent)) {
      if (!owners.has(node.node))
        owners.set(node.node, ownersOfNode(prefix.tokens, node.position, node.numTokens, prompts));
      // A root is its own parent.
      if (node.parent === node.node) break;
    }
  }
  return owners;
}

/** A prompt owns a stretch if it has all that is before it and begins it; the stretch may go on with its answer. */
function ownersOfNode(
  tokens: readonly number[],
  position: number,
  numTokens: number,
  prompts: readonly (readonly number[])[],
): number[] {
  const owns = (prompt: readonly number[]): boolean => {
    const end = Math.min(position + numTokens, prompt.length);
    for (let at = 0; at < end; at += 1) if (prompt[at] !== tokens[at]) return false;
    return end > position;
  };
  return prompts.flatMap((prompt, index) => (owns(prompt) ? [index] : []));
}

/** Counts them. */
export function summarise(cells: readonly PoolCell[]): PoolSummary {
  const num = (is: (cell: PoolCell) => boolean): number => cells.filter(is).length;
  return {
    total: cells.length,
    free: num(({ state }) => state === 'free'),
    held: num(({ state }) => state === 'held'),
    shared: num(({ state }) => state === 'shared'),
    cached: num(({ state }) => state === 'cached'),
    pinned: num(({ isPinned }) => isPinned),
  };
}
