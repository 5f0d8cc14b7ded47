//! What callers do to the cache on purpose.

use super::PrefixCache;
use super::journal::{CacheEvent, End, EvictReason};
use super::order::{Policy, Rank};
use super::trie::{MAX_GROUPS, NodeId, common_len, key, key_len};
use crate::kv::BLOCK_SIZE;

impl PrefixCache {
    /// Chooses how blocks of equal priority are given up; all places in the orders are worked out anew.
    pub(in crate::kv) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        let trie = &mut self.trie;
        for (index, group) in self.groups.iter_mut().enumerate() {
            let renewed = group.order.iter().map(|rank| Rank::new(policy, rank.node, trie.get(rank.node), index));
            group.order = renewed.collect();
            for rank in &group.order {
                trie.get_mut(rank.node).slots[index].rank = Some(*rank);
            }
        }
    }

    /// Nodes of the full blocks that `tokens` begin with, as far as the trie knows them.
    pub(in crate::kv) fn path(&self, salt: &str, tokens: &[u32]) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut last = self.trie.root(salt);
        for block in tokens.chunks_exact(BLOCK_SIZE) {
            let Some(node) = last.and_then(|last| self.trie.child(last, &key(block))) else { break };
            path.push(node);
            last = Some(node);
        }
        path
    }

    /// Pins what is there of a prefix, in full blocks; returns their tokens.
    pub(in crate::kv) fn pin_prefix(&mut self, salt: &str, tokens: &[u32]) -> usize {
        let path = self.path(salt, tokens);
        path.iter().for_each(|&node| self.pin(node));
        path.len() * BLOCK_SIZE
    }

    /// Unpins a prefix, but for what a longer pinned one needs; returns the tokens that are not pinned any more.
    pub(in crate::kv) fn unpin_prefix(&mut self, salt: &str, tokens: &[u32]) -> usize {
        let mut num_tokens = 0;
        for id in self.path(salt, tokens).into_iter().rev() {
            let node = self.trie.get(id);
            if let (true, 0, Some(parent)) = (node.is_pinned, node.num_pinned_children, node.parent) {
                self.change(id, |node| node.is_pinned = false);
                self.change(parent, |parent| parent.num_pinned_children -= 1);
                num_tokens += BLOCK_SIZE;
            }
        }
        num_tokens
    }

    /// Drops what nobody holds of everything that begins with `tokens`; returns the number of blocks.
    pub(in crate::kv) fn evict_prefix(&mut self, salt: &str, tokens: &[u32]) -> usize {
        let path = self.path(salt, tokens);
        let rest = &tokens[path.len() * BLOCK_SIZE..];
        let Some(base) = path.last().copied().or_else(|| self.trie.root(salt)) else { return 0 };
        let begins = key(&rest[..rest.len().min(BLOCK_SIZE)]);
        let mut found: Vec<NodeId> = match rest.len() {
            0 => vec![base],
            len if len < BLOCK_SIZE => {
                let is_alike = |id: &NodeId| common_len(&self.trie.get(*id).key, &begins) == len;
                self.trie.children(base).filter(is_alike).collect()
            }
            _ => return 0,
        };
        let mut next = 0;
        while let Some(&id) = found.get(next) {
            found.extend(self.trie.children(id));
            next += 1;
        }
        self.drop_all(found)
    }

    /// Drops everything that nobody holds; returns the number of blocks.
    pub(in crate::kv) fn clear(&mut self) -> usize {
        let mut all: Vec<_> = self.trie.iter().map(|(id, node)| (node.depth, id)).collect();
        all.sort_unstable();
        self.drop_all(all.into_iter().map(|(_, id)| id).collect())
    }

    /// Drops nodes, of which parents come before their children, as far as they are free.
    fn drop_all(&mut self, nodes: Vec<NodeId>) -> usize {
        let before = self.num_cached();
        for id in nodes.into_iter().rev() {
            // A root goes with the last of its children.
            if self.trie.contains(id) {
                self.drop_free(id, EvictReason::Asked);
            }
        }
        before - self.num_cached()
    }

    /// Drops those of a node's blocks that nobody holds, if they need not outlast what comes after them; true if nothing
    /// is left of it.
    fn drop_free(&mut self, id: NodeId, reason: EvictReason) -> bool {
        // A block that sees the whole context takes the node with it, so it comes last.
        let (num_groups, primary) = (self.groups.len(), self.primary);
        for group in (0..num_groups).filter(|&group| group != primary).chain([primary]) {
            let Some(node) = self.trie.find(id) else { return true };
            if self.is_free(group, node) && self.may_go(group, node) {
                self.evict(group, id, End::Evicted(reason));
            }
        }
        !self.trie.contains(id)
    }

    /// Blocks with cached contents, over all groups.
    pub(super) fn num_cached(&self) -> usize {
        let blocks = |group: usize| move |(_, node): (_, &super::trie::Node)| node.slots[group].block.is_some();
        (0..MAX_GROUPS).map(|group| self.trie.iter().filter(|&entry| blocks(group)(entry)).count()).sum()
    }

    /// Drops `last` and what is before it, as far as nobody else needs it: what it holds cannot be trusted.
    pub(in crate::kv) fn distrust(&mut self, last: NodeId) {
        let mut next = Some(last);
        while let Some(id) = next.filter(|&id| self.trie.contains(id)) {
            next = self.trie.get(id).parent;
            if !self.drop_free(id, EvictReason::Failed) {
                return;
            }
        }
    }

    /// Drops tails that `id`, which is new, begins with: nobody will copy their rows any more.
    pub(in crate::kv) fn supersede(&mut self, id: NodeId) {
        let node = self.trie.get(id);
        let (Some(parent), key) = (node.parent, node.key) else { return };
        while self.trie.get(parent).num_children > 1 {
            let [mut before, _] = self.trie.nearest(parent, &key);
            let Some((tail, len)) = before.next() else { return };
            drop(before);
            let node = self.trie.get(tail);
            let is_part = node.is_tail() && len == key_len(&node.key) && !node.is_pinned;
            if !is_part || !self.drop_free(tail, EvictReason::Superseded) {
                return;
            }
        }
    }

    /// Takes note that a sequence of `num_tokens` tokens ends at `last`: its next turn will begin with them.
    pub(in crate::kv) fn note_turn(&mut self, last: NodeId, num_tokens: usize) {
        let mut next = Some(last);
        while let Some(id) = next {
            let node = self.trie.get(id);
            next = node.parent;
            if node.longest < num_tokens {
                self.change(id, |node| node.longest = num_tokens);
            }
        }
    }

    /// Takes note that `num_tokens` tokens from `position` on entered the cache.
    pub(in crate::kv) fn note_stored(&mut self, position: usize, num_tokens: usize) {
        if num_tokens > 0 {
            self.journal.push(CacheEvent::Stored { position, num_tokens });
        }
    }

    /// Takes note that `num_tokens` tokens from `position` on, in full blocks, came back into a layer group.
    pub(in crate::kv) fn note_restored(&mut self, position: usize, num_tokens: usize, group: usize) {
        self.journal.push(CacheEvent::Restored { position, num_tokens, group });
    }

    /// Takes note that a request found `nodes`, and `num_tokens` tokens with its tail's.
    pub(in crate::kv) fn note_hit(&mut self, nodes: &[NodeId], num_tokens: usize, num_asked: usize) {
        let stats = &mut self.journal.stats;
        stats.num_lookups += 1;
        stats.asked_tokens += num_asked as u64;
        if num_tokens > 0 {
            stats.num_hits += 1;
            nodes.iter().for_each(|&node| self.trie.get_mut(node).num_hits += 1);
            self.journal.push(CacheEvent::Hit { num_tokens });
        }
    }
}
