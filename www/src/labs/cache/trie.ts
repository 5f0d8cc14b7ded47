/** The trie of prefixes, with chains of blocks that nothing leaves drawn as one stretch. */
import type { CachePrefix } from 'pagewise';
import { BLOCK_SIZE } from '../shared/token-runs';

/** A stretch of blocks between two forks. */
export interface TrieStretch {
  /** Unique within the trie. */
  readonly key: string;
  readonly start: number;
  readonly tokens: readonly number[];
  readonly numBlocks: number;
  readonly children: readonly TrieStretch[];
  /** Whether a prefix that ends here is pinned. */
  readonly isPinned: boolean;
  readonly numHits: number;
}

interface Node {
  readonly tokens: readonly number[];
  readonly children: Map<string, Node>;
  ends: CachePrefix[];
}

/** The stretches that begin at the root, of the prefixes under `salt`. The cache's own trie has a block's tokens as a key. */
export function trieOf(prefixes: readonly CachePrefix[], salt: string): TrieStretch[] {
  const root: Node = { tokens: [], children: new Map(), ends: [] };
  for (const prefix of prefixes) {
    if (prefix.salt !== salt) continue;
    let node = root;
    for (let start = 0; start < prefix.tokens.length; start += BLOCK_SIZE) {
      const tokens = prefix.tokens.slice(start, start + BLOCK_SIZE);
      const key = tokens.join();
      const child: Node = node.children.get(key) ?? { tokens, children: new Map(), ends: [] };
      node.children.set(key, child);
      node = child;
    }
    node.ends.push(prefix);
  }
  return [...root.children.values()].map((child, index) => stretch(child, 0, String(index)));
}

function stretch(first: Node, start: number, key: string): TrieStretch {
  const tokens = [...first.tokens];
  let node = first;
  let numBlocks = 1;
  // A prefix that ends inside of a chain, such as a pinned one, is not told apart.
  for (let [next, another] = node.children.values(); next && !another; [next, another] = node.children.values()) {
    tokens.push(...next.tokens);
    numBlocks += 1;
    node = next;
  }
  const end = start + tokens.length;
  return {
    key,
    start,
    tokens,
    numBlocks,
    children: [...node.children.values()].map((child, index) => stretch(child, end, `${key}.${index}`)),
    isPinned: node.ends.some(({ isPinned }) => isPinned),
    numHits: node.ends.reduce((sum, { numHits }) => sum + numHits, 0),
  };
}
