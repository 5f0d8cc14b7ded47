/** The tree of a conversation's messages: paths, branches, and the messages that a branch sends. No state, no screen. */
import { withSources } from '../documents/source';
import type { ChatMessage } from '../state/engine';
import { withAttachments } from './attachments';
import type { MessageRecord, SystemPrompt } from './records';

/** What of a message the tree needs. */
export type TreeNode = Pick<MessageRecord, 'id' | 'parent' | 'created' | 'role'>;

/** Messages by id. */
export type Nodes<Node extends TreeNode> = ReadonlyMap<string, Node>;

/** From the first message to `leaf`. A parent that is missing ends the path: damage costs messages, not the conversation. */
export function pathTo<Node extends TreeNode>(nodes: Nodes<Node>, leaf: string | null): Node[] {
  const path: Node[] = [];
  const seen = new Set<string>();
  for (let at = leaf; at !== null && !seen.has(at); ) {
    seen.add(at);
    const node = nodes.get(at);
    if (!node) break;
    path.push(node);
    at = node.parent;
  }
  return path.reverse();
}

/** Children by parent, oldest first; the first messages are under null, and so is whatever lost its parent. */
export function childrenOf<Node extends TreeNode>(nodes: Nodes<Node>): Map<string | null, Node[]> {
  const children = new Map<string | null, Node[]>();
  for (const node of nodes.values()) {
    const parent = node.parent !== null && nodes.has(node.parent) ? node.parent : null;
    const siblings = children.get(parent);
    if (siblings) siblings.push(node);
    else children.set(parent, [node]);
  }
  for (const siblings of children.values()) siblings.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
  return children;
}

/** The last message of the newest branch below `id`. */
export function newestLeaf<Node extends TreeNode>(nodes: Nodes<Node>, id: string | null): string | null {
  const children = childrenOf(nodes);
  let leaf = id;
  const seen = new Set<string | null>([leaf]);
  for (;;) {
    const next = children.get(leaf)?.at(-1)?.id;
    if (next === undefined || seen.has(next)) return leaf;
    seen.add(next);
    leaf = next;
  }
}

/** One line of the tree view. */
export interface TreeRow<Node> {
  readonly node: Node;
  /** How many forks are above it. */
  readonly depth: number;
  readonly isFork: boolean;
}

/** The whole tree as lines: a message's only child is at its own depth, each of several a step deeper. */
export function treeRows<Node extends TreeNode>(nodes: Nodes<Node>): TreeRow<Node>[] {
  const children = childrenOf(nodes);
  const rows: TreeRow<Node>[] = [];
  // A stack of its own: conversations are deeper than calls may be.
  const firsts = children.get(null) ?? [];
  const stack = firsts.map((node) => ({ node, depth: firsts.length > 1 ? 1 : 0 })).reverse();
  for (let top = stack.pop(); top; top = stack.pop()) {
    const below = children.get(top.node.id) ?? [];
    const depth = top.depth + (below.length > 1 ? 1 : 0);
    rows.push({ ...top, isFork: below.length > 1 });
    for (const node of [...below].reverse()) stack.push({ node, depth });
  }
  return rows;
}

/**
 * The messages that lead to an answer after the last one of `path`. Questions whose answer failed or is empty are left out
 * with it: templates want questions and answers to alternate, and what failed was not part of the talk.
 */
export function toMessages(path: readonly Omit<MessageRecord, 'conversation'>[], system: SystemPrompt): ChatMessage[] {
  const messages: ChatMessage[] = [];
  if (system.text.trim() !== '') messages.push({ role: 'system', content: system.text });
  path.forEach((message, index) => {
    if (message.role === 'assistant') {
      if (message.text !== '') messages.push({ role: 'assistant', content: message.text });
      return;
    }
    const answer = path[index + 1];
    if (answer && (answer.role !== 'assistant' || answer.text === '')) return;
    const question = withAttachments(message.text, message.attachments);
    messages.push({ role: 'user', content: withSources(question, message.sources ?? []) });
  });
  return messages;
}
