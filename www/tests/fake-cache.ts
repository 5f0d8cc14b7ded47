/**
 * The fake engine's tokenizer and prefix cache: a word is a token, and prompts under one salt are kept in a trie of blocks of 16,
 * as the engine does it; nothing is ever given up.
 */
import type { CacheBlock, CacheEvent, CachePrefix, CacheStats } from '../../js/src/cache-types';
import type {
  ChatCompletion,
  ChatCompletionCreateParamsNonStreaming,
  ChatRequestMessage,
  StepTrace,
} from '../../js/src/types';

const BLOCK = 16;
const words: string[] = [];
const idOf = new Map<string, number>();

/** Text to ids: each word, with the space before it, is one. */
export function fakeTokenize(text: string): number[] {
  return (text.match(/\s*\S+/g) ?? []).map((word) => {
    const id = idOf.get(word) ?? words.push(word) - 1;
    idOf.set(word, id);
    return id;
  });
}

export const fakeDetokenize = (ids: readonly number[]): string => ids.map((id) => words[id] ?? '').join('');

/** The messages as a text: `<role> content` one after another. */
export function fakeTemplate(messages: readonly ChatRequestMessage[]): string {
  return messages.map(({ role, content }) => `<${role}> ${String(content)}`).join(' ');
}

interface Node {
  id: number;
  parent: number;
  tokens: number[];
  position: number;
  block: number;
  children: Map<string, Node>;
  isPinned: boolean;
}

export class FakeCache {
  private readonly roots = new Map<string, Node>();
  private numNodes = 0;
  private numBlocks = 0;
  private readonly counts = { lookups: 0, hits: 0, asked: 0, read: 0 };
  private readonly sequences: { salt: string; ids: number[] }[] = [];
  private readonly listeners = new Set<(event: CacheEvent) => void>();
  private readonly saved = new Map<Blob, number[]>();
  readonly steps = new Set<(step: StepTrace) => void>();
  /** Every policy that was set. */
  readonly policies: unknown[] = [];

  constructor(private readonly poolBlocks: number) {}

  onEvent(callback: (event: CacheEvent) => void): () => void {
    this.listeners.add(callback);
    return () => void this.listeners.delete(callback);
  }

  /** Answers a chat request: what of it was cached follows from the prompts before. */
  answer(params: ChatCompletionCreateParamsNonStreaming, answer: string): ChatCompletion {
    const ids = fakeTokenize(fakeTemplate(params.messages));
    const [salt, isOn] = [params.cache?.salt ?? '', params.cache?.enabled !== false];
    const common = ({ ids: other }: { ids: number[] }): number => {
      const end = ids.findIndex((id, at) => other[at] !== id);
      return end < 0 ? ids.length : end;
    };
    const mine = this.sequences.filter((sequence) => sequence.salt === salt);
    const cached = isOn ? Math.min(ids.length - 1, Math.max(0, ...mine.map(common))) : 0;
    const text = fakeTokenize(answer).slice(0, params.max_tokens ?? 8);
    if (isOn) this.store(salt, [...ids, ...text.slice(0, -1)], params.cache?.pin === true);
    this.counts.lookups += 1;
    this.counts.hits += cached > 0 ? 1 : 0;
    this.counts.asked += ids.length;
    this.counts.read += cached;
    for (const listener of this.listeners) listener({ kind: 'hit', numTokens: cached });
    return {
      id: `chatcmpl-${this.counts.lookups}`,
      object: 'chat.completion',
      created: 0,
      model: 'fake',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: fakeDetokenize(text), refusal: null },
          finish_reason: 'length',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: ids.length,
        completion_tokens: text.length,
        total_tokens: ids.length + text.length,
        prompt_tokens_details: { cached_tokens: cached },
      },
      timings: {
        queue_ms: 0,
        ttft_ms: 11 + 0.31 * (ids.length - cached),
        tpot_ms: 9.4,
        prefill_tokens_per_s: 3200,
        decode_tokens_per_s: 106,
      },
      cache: {
        read_tokens: cached,
        written_tokens: ids.length - cached,
        miss: cached < ids.length - 1 ? { position: cached, reason: 'differs', expected: 1, found: 2 } : null,
      },
    };
  }

  private store(salt: string, ids: number[], isPinned: boolean): void {
    this.sequences.push({ salt, ids });
    const root = this.roots.get(salt) ?? this.node(0, [], 0, -1);
    this.roots.set(salt, root);
    let node = root;
    for (let position = 0; position < ids.length; position += BLOCK) {
      const tokens = ids.slice(position, position + BLOCK);
      const key = tokens.join();
      const child = node.children.get(key) ?? this.node(node.id, tokens, position, this.numBlocks++);
      child.isPinned ||= isPinned;
      node.children.set(key, child);
      node = child;
    }
  }

  private node(parent: number, tokens: number[], position: number, block: number): Node {
    return { id: this.numNodes++, parent, tokens, position, block, children: new Map(), isPinned: false };
  }

  private walk(visit: (node: Node, path: number[], salt: string) => void): void {
    const down = (node: Node, before: number[], salt: string): void => {
      const path = [...before, ...node.tokens];
      if (node.tokens.length > 0) visit(node, path, salt);
      for (const child of node.children.values()) down(child, path, salt);
    };
    for (const [salt, root] of this.roots) down(root, [], salt);
  }

  blocks(): Promise<CacheBlock[]> {
    const blocks: CacheBlock[] = Array.from({ length: this.poolBlocks }, (_, block) => ({
      group: 0,
      block,
      numHolders: 0,
      holders: [],
      cached: null,
    }));
    this.walk(({ id, parent, tokens, position, block, isPinned }) => {
      const found = blocks[block];
      const times = { idleMs: 5, expiresInMs: null, numHits: 1, priority: 0 };
      if (found) found.cached = { node: id, parent, position, numTokens: tokens.length, isPinned, ...times };
    });
    return Promise.resolve(blocks);
  }

  prefixes(): Promise<CachePrefix[]> {
    const prefixes: CachePrefix[] = [];
    this.walk(({ id, children, isPinned }, tokens, salt) => {
      if (children.size > 0) return;
      const facts = { name: null, numBlocks: Math.ceil(tokens.length / BLOCK), bytes: tokens.length * 23_040 };
      const times = { ageMs: 9, idleMs: 5, expiresInMs: null, numHits: 0, priority: 0, isHeld: false };
      prefixes.push({ node: id, salt, tokens, isPinned, ...facts, ...times });
    });
    return Promise.resolve(prefixes);
  }

  stats(): Promise<CacheStats> {
    const { lookups, hits, asked, read } = this.counts;
    return Promise.resolve({
      numNodes: this.numNodes,
      numBlocks: this.numBlocks,
      numPinned: 0,
      numLookups: lookups,
      numHits: hits,
      askedTokens: asked,
      readTokens: read,
      writtenTokens: asked - read,
      numDuplicates: 0,
      numEvicted: 0,
      numExpired: 0,
      numDropped: 0,
      numRestored: 0,
      groups: [],
      numForgottenGroups: 0,
    });
  }

  save(ids: readonly number[]): Promise<Blob> {
    const blob = new Blob([JSON.stringify(ids)]);
    this.saved.set(blob, [...ids]);
    return Promise.resolve(blob);
  }

  restore(blob: Blob, { salt }: { salt: string }): Promise<void> {
    this.store(salt, this.saved.get(blob) ?? [], false);
    return Promise.resolve();
  }

  evict(_ids: readonly number[], { salt }: { salt: string }): Promise<number> {
    return Promise.resolve(this.roots.delete(salt) ? 1 : 0);
  }

  clear(): Promise<number> {
    this.roots.clear();
    this.sequences.length = 0;
    const num = this.numBlocks;
    this.numBlocks = 0;
    return Promise.resolve(num);
  }

  setPolicy(policy: unknown): Promise<void> {
    this.policies.push(policy);
    return Promise.resolve();
  }
}
