//! The cache as it can be shown.

use super::PrefixCache;
use super::journal::{CacheEvent, CacheStats};
use super::trie::{Node, NodeId, key_len};
use crate::kv::{BLOCK_SIZE, BlockId};

/// One physical block, for drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct BlockView {
    /// Layer group.
    pub group: usize,
    /// Its number in the group's pool.
    pub block: BlockId,
    /// Sequences that hold it.
    pub num_holders: u32,
    /// What the prefix cache knows about its contents; `None` if it is not cached.
    pub cached: Option<CachedView>,
}

/// A cached block's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct CachedView {
    /// The trie node.
    pub node: NodeId,
    /// The node before it; a root if there are no tokens before it.
    pub parent: NodeId,
    /// Of its first token.
    pub position: usize,
    /// Tokens, fewer than a block's for a tail.
    pub num_tokens: usize,
    /// Lower ones are given up first.
    pub priority: i32,
    /// Given up last.
    pub is_pinned: bool,
    /// When it was used last.
    pub used_ms: u64,
    /// When it will be dropped, if it is not used before.
    pub expires_ms: Option<u64>,
    /// Requests that found it.
    pub num_hits: u64,
}

/// A prefix that the cache has: one that has a name, or that nothing follows.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PrefixView {
    /// The trie node that it ends with.
    pub node: NodeId,
    /// What the request called it.
    pub name: Option<String>,
    /// The salt that it is under.
    pub salt: String,
    /// Its token ids.
    pub tokens: Vec<u32>,
    /// Blocks that hold it, over all layer groups, those shared with other prefixes included.
    pub num_blocks: usize,
    /// When it was stored.
    pub created_ms: u64,
    /// When it was used last.
    pub used_ms: u64,
    /// When its end will be dropped, if it is not used before.
    pub expires_ms: Option<u64>,
    /// Requests that found all of it.
    pub num_hits: u64,
    /// Lower ones are given up first.
    pub priority: i32,
    /// Given up last.
    pub is_pinned: bool,
    /// Whether a sequence holds its end now.
    pub is_held: bool,
}

fn expiry(node: &Node) -> Option<u64> {
    (!node.is_pinned && node.expires_ms() < u64::MAX).then_some(node.expires_ms())
}

impl PrefixCache {
    /// Every block of every pool.
    pub(in crate::kv) fn blocks(&self) -> Vec<BlockView> {
        let mut views = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            for block in (0..).take(group.pool.num_blocks()) {
                let cached = group.pool.node(block).map(|node| self.cached_view(node));
                views.push(BlockView { group: index, block, num_holders: group.pool.ref_count(block), cached });
            }
        }
        views
    }

    fn cached_view(&self, id: NodeId) -> CachedView {
        let node = self.trie.get(id);
        CachedView {
            node: id,
            parent: node.parent.unwrap_or(id),
            position: node.depth * BLOCK_SIZE,
            num_tokens: key_len(&node.key),
            priority: node.priority,
            is_pinned: node.is_pinned,
            used_ms: node.used_ms,
            expires_ms: expiry(node),
            num_hits: node.num_hits,
        }
    }

    /// The prefixes that have a name or that nothing follows.
    pub(in crate::kv) fn prefixes(&self) -> Vec<PrefixView> {
        let is_shown = |node: &Node| node.parent.is_some() && (node.num_children == 0 || node.name.is_some());
        self.trie.iter().filter(|(_, node)| is_shown(node)).map(|(id, node)| self.prefix_view(id, node)).collect()
    }

    fn prefix_view(&self, id: NodeId, end: &Node) -> PrefixView {
        let (mut reversed, mut num_blocks, mut node) = (Vec::new(), 0, end);
        while let Some(parent) = node.parent {
            reversed.extend(node.key[..key_len(&node.key)].iter().rev().map(|entry| entry - 1));
            num_blocks += node.slots.iter().filter(|slot| slot.block.is_some()).count();
            node = self.trie.get(parent);
        }
        reversed.reverse();
        PrefixView {
            node: id,
            name: end.name.as_deref().map(str::to_owned),
            salt: self.trie.salt(id).to_string(),
            tokens: reversed,
            num_blocks,
            created_ms: end.created_ms,
            used_ms: end.used_ms,
            expires_ms: expiry(end),
            num_hits: end.num_hits,
            priority: end.priority,
            is_pinned: end.is_pinned,
            is_held: !self.is_free(self.primary, end),
        }
    }

    /// Counters and present state.
    pub(in crate::kv) fn cache_stats(&self) -> CacheStats {
        let is_pinned = |(_, node): &(NodeId, &Node)| node.is_pinned;
        let blocks = |node: &Node| node.slots.iter().filter(|slot| slot.block.is_some()).count();
        CacheStats {
            num_nodes: self.trie.len(),
            num_blocks: self.num_cached(),
            num_pinned: self.trie.iter().filter(is_pinned).map(|(_, node)| blocks(node)).sum(),
            ..self.journal.stats.clone()
        }
    }

    /// What happened since the last call.
    pub(in crate::kv) fn take_events(&mut self) -> Vec<CacheEvent> {
        self.journal.take_events()
    }
}
