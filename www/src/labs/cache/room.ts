/** Whether an experiment has room in the block pool, from its tokens alone. */
import { BLOCK_SIZE } from '../shared/token-runs';

interface Node {
  readonly children: Map<string, Node>;
}

/**
 * Blocks that prompts and their answers take if nothing is ever given up: what they begin with in common is there once, in
 * full blocks.
 */
export function blocksOf(prompts: readonly (readonly number[])[], answerTokens: number): number {
  const root: Node = { children: new Map() };
  let num = 0;
  for (const ids of prompts) {
    const full = Math.floor(ids.length / BLOCK_SIZE);
    let node = root;
    for (let block = 0; block < full; block += 1) {
      const key = ids.slice(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE).join();
      const next = node.children.get(key) ?? { children: new Map() };
      if (!node.children.has(key)) num += 1;
      node.children.set(key, next);
      node = next;
    }
    // The end of a prompt and its answer are its own.
    num += Math.ceil((ids.length + answerTokens - full * BLOCK_SIZE) / BLOCK_SIZE);
  }
  return num;
}
