//! Pools and trie together: blocks change hands here, and only here.

use std::collections::BTreeSet;

use super::Retention;
use super::journal::{End, EvictReason, Journal};
use super::order::{Policy, Rank};
use super::trie::{MAX_GROUPS, Node, NodeId, Trie, key, key_len};
use crate::kv::pool::Released;
use crate::kv::{BLOCK_SIZE, BlockId, BlockPool, GroupConfig};

/// One layer group's blocks.
#[derive(Debug, Clone)]
pub(in crate::kv) struct Group {
    pub(in crate::kv) config: GroupConfig,
    pub(in crate::kv) pool: BlockPool,
    /// Free cached blocks that may be given up now, the first to go in front. Where the whole context is seen, only
    /// those of nodes without children.
    pub(super) order: BTreeSet<Rank>,
    /// Free cached blocks of pinned nodes.
    pub(super) num_pinned_free: usize,
}

impl Group {
    pub(in crate::kv) fn num_pinned_free(&self) -> usize {
        self.num_pinned_free
    }
}

/// Where a sequence's block went.
#[derive(Debug)]
pub(in crate::kv) struct Stored {
    pub(in crate::kv) node: NodeId,
    /// Per layer group, the block that the sequence's table is to have.
    pub(in crate::kv) blocks: [Option<BlockId>; MAX_GROUPS],
    /// Whether the trie did not know these tokens.
    pub(in crate::kv) is_new: bool,
}

/// The pools, and what their blocks hold.
#[derive(Debug, Clone)]
pub(in crate::kv) struct PrefixCache {
    pub(in crate::kv) groups: Vec<Group>,
    pub(super) trie: Trie,
    /// What may expire, the first to go in front: nodes in the order of the group `primary`.
    pub(super) expiries: BTreeSet<(u64, NodeId)>,
    /// The group that sees the whole context, or the first.
    pub(super) primary: usize,
    pub(super) policy: Policy,
    pub(super) journal: Journal,
    tick: u64,
    pub(super) now_ms: u64,
}

impl PrefixCache {
    pub(in crate::kv) fn new(configs: Vec<GroupConfig>) -> Self {
        assert!(configs.len() <= MAX_GROUPS, "{} layer groups, at most {MAX_GROUPS}", configs.len());
        let primary = configs.iter().position(|config| config.window.is_none()).unwrap_or(0);
        let group = |config: GroupConfig| Group {
            config,
            pool: BlockPool::new(config.num_blocks),
            order: BTreeSet::new(),
            num_pinned_free: 0,
        };
        Self {
            groups: configs.into_iter().map(group).collect(),
            trie: Trie::default(),
            expiries: BTreeSet::new(),
            primary,
            policy: Policy::default(),
            journal: Journal::default(),
            tick: 0,
            now_ms: 0,
        }
    }

    /// Blocks of a group that can be taken, with pinned ones or without.
    pub(in crate::kv) fn num_free(&self, group: usize, breaks_pins: bool) -> usize {
        let group = &self.groups[group];
        group.pool.num_free() - if breaks_pins { 0 } else { group.num_pinned_free }
    }

    /// Takes an empty block, or empties the one that is to go first.
    pub(in crate::kv) fn take(&mut self, group: usize) -> Option<BlockId> {
        if self.groups[group].pool.num_empty() == 0 {
            // What became the last of its prefix since the time was set may be too old as well.
            self.set_now(self.now_ms);
        }
        if self.groups[group].pool.num_empty() == 0 {
            let first = self.groups[group].order.first()?.node;
            self.evict(group, first, End::Evicted(EvictReason::Capacity));
        }
        self.groups[group].pool.take()
    }

    /// Holds a block once more.
    pub(in crate::kv) fn hold(&mut self, group: usize, block: BlockId) {
        let node = self.groups[group].pool.node(block);
        let is_listed = self.groups[group].pool.ref_count(block) == 0;
        if let (true, Some(node)) = (is_listed, node) {
            self.unlist(group, node);
        }
        self.groups[group].pool.hold(block);
    }

    /// Lets go of a block once. A cached one becomes the most recently used.
    pub(in crate::kv) fn release(&mut self, group: usize, block: BlockId) {
        if self.groups[group].pool.release(block) == Released::Cached
            && let Some(id) = self.groups[group].pool.node(block)
        {
            self.tick += 1;
            let node = self.trie.get_mut(id);
            node.slots[group].tick = self.tick;
            node.used_ms = self.now_ms;
            self.list(group, id);
        }
    }

    /// Whether a node's block in a group is free.
    pub(super) fn is_free(&self, group: usize, node: &Node) -> bool {
        node.slots[group].block.is_some_and(|block| self.groups[group].pool.ref_count(block) == 0)
    }

    /// Whether a free block may be given up now: never before those that are worth nothing without it (K4).
    pub(super) fn may_go(&self, group: usize, node: &Node) -> bool {
        self.groups[group].config.window.is_some() || node.num_children == 0
    }

    /// Takes note that a node's block is free.
    fn list(&mut self, group: usize, id: NodeId) {
        let node = self.trie.get(id);
        self.groups[group].num_pinned_free += usize::from(node.is_pinned);
        if !self.may_go(group, node) {
            return;
        }
        let rank = Rank::new(self.policy, id, node, group);
        if group == self.primary && !node.is_pinned && node.expires_ms() < u64::MAX {
            self.expiries.insert((node.expires_ms(), id));
        }
        self.groups[group].order.insert(rank);
        self.trie.get_mut(id).slots[group].rank = Some(rank);
    }

    /// Takes note that a node's block is not free any more, or that its place in the order will change.
    fn unlist(&mut self, group: usize, id: NodeId) {
        let node = self.trie.get_mut(id);
        let Group { order, num_pinned_free, .. } = &mut self.groups[group];
        *num_pinned_free -= usize::from(node.is_pinned);
        if let Some(rank) = node.slots[group].rank.take() {
            order.remove(&rank);
            if group == self.primary {
                self.expiries.remove(&(node.expires_ms(), id));
            }
        }
    }

    /// Changes a node, and its place in the orders with it.
    pub(super) fn change(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let is_free: [bool; MAX_GROUPS] =
            std::array::from_fn(|group| group < self.groups.len() && self.is_free(group, self.trie.get(id)));
        let free = || (0..MAX_GROUPS).filter(|&group| is_free[group]);
        free().for_each(|group| self.unlist(group, id));
        change(self.trie.get_mut(id));
        free().for_each(|group| self.list(group, id));
    }

    /// Gives up a node's free block. Without one in the group that sees the whole context, it is worth nothing.
    pub(super) fn evict(&mut self, group: usize, id: NodeId, end: End) {
        let is_whole = self.groups[group].config.window.is_none();
        for other in 0..self.groups.len() {
            if other != group && !is_whole {
                continue;
            }
            let node = self.trie.get(id);
            let (position, num_tokens) = (node.depth * BLOCK_SIZE, key_len(&node.key));
            if node.slots[other].block.is_some() {
                self.unlist(other, id);
            }
            if let Some(block) = self.trie.get_mut(id).slots[other].block.take() {
                self.groups[other].pool.forget(block);
                self.journal.push_end(position, num_tokens, other, end);
            }
        }
        self.prune(id, end);
    }

    /// Removes a node that nothing needs any more, and its ancestors likewise.
    pub(super) fn prune(&mut self, mut id: NodeId, end: End) {
        loop {
            let node = self.trie.get(id);
            if node.has_block() || node.num_children > 0 || node.num_users > 0 {
                return;
            }
            let node = self.trie.remove(id);
            let Some(parent) = node.parent else { return };
            self.journal.bury(node.path_hash, end);
            self.change(parent, |parent| {
                parent.num_children -= 1;
                parent.num_pinned_children -= usize::from(node.is_pinned);
            });
            id = parent;
        }
    }

    /// Sets the time; what outlived its own is dropped.
    pub(in crate::kv) fn set_now(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        while let Some(&(expires_ms, id)) = self.expiries.first()
            && expires_ms <= self.now_ms
        {
            self.evict(self.primary, id, End::Expired);
        }
    }

    /// Puts a sequence's block of each group (those that it holds) into the cache, after `parent`. Where the cache has
    /// one already, the sequence gets it for its duplicate (K6).
    pub(in crate::kv) fn store(
        &mut self,
        parent: NodeId,
        tokens: &[u32],
        own: [Option<BlockId>; MAX_GROUPS],
    ) -> Stored {
        let key = key(tokens);
        let (id, is_new) = self.trie.child_or_new(parent, key, self.now_ms);
        if is_new {
            self.change(parent, |parent| parent.num_children += 1);
        }
        let mut stored = Stored { node: id, blocks: own, is_new };
        for (group, block) in stored.blocks.iter_mut().enumerate() {
            let Some(own) = *block else { continue };
            match self.trie.get(id).slots[group].block {
                Some(cached) if cached == own => {}
                Some(cached) => {
                    self.hold(group, cached);
                    self.release(group, own);
                    self.journal.stats.num_duplicates += 1;
                    *block = Some(cached);
                }
                None => {
                    self.groups[group].pool.keep(own, id);
                    self.trie.get_mut(id).slots[group].block = Some(own);
                }
            }
        }
        stored
    }

    pub(in crate::kv) fn root_or_new(&mut self, salt: &str) -> NodeId {
        self.trie.root_or_new(salt, self.now_ms)
    }

    /// A node's block in a group.
    ///
    /// # Panics
    /// If it has been given up.
    pub(in crate::kv) fn block(&self, id: NodeId, group: usize) -> BlockId {
        self.trie.get(id).block(group)
    }

    /// Whether [`PrefixCache::num_free`] counts a node's block.
    pub(in crate::kv) fn counts_as_free(&self, group: usize, id: NodeId, breaks_pins: bool) -> bool {
        let node = self.trie.get(id);
        self.is_free(group, node) && (breaks_pins || !node.is_pinned)
    }

    /// Makes a node last at least as long as a request wants it to. `position` is its first token's.
    pub(in crate::kv) fn retain(&mut self, id: NodeId, retention: &Retention) {
        let (now_ms, parent) = (self.now_ms, self.trie.get(id).parent);
        let position = self.trie.get(id).depth * BLOCK_SIZE;
        let end = position + key_len(&self.trie.get(id).key);
        let pins = end <= retention.pin_tokens && parent.is_some_and(|parent| self.is_pinned_or_root(parent));
        let name = retention.name.as_ref().filter(|(at, _)| (position + 1..=position + BLOCK_SIZE).contains(at));
        self.change(id, |node| {
            node.used_ms = now_ms;
            node.priority = node.priority.max(retention.priority);
            node.ttl_ms = node.ttl_ms.max(retention.ttl_at(position));
            if let Some((_, name)) = name {
                node.name = Some(name.as_str().into());
            }
        });
        if pins {
            self.pin(id);
        }
    }

    fn is_pinned_or_root(&self, id: NodeId) -> bool {
        let node = self.trie.get(id);
        node.is_pinned || node.parent.is_none()
    }

    /// Pins a node whose parent is pinned.
    pub(super) fn pin(&mut self, id: NodeId) {
        let node = self.trie.get(id);
        if let (false, Some(parent)) = (node.is_pinned, node.parent) {
            self.change(id, |node| node.is_pinned = true);
            self.change(parent, |parent| parent.num_pinned_children += 1);
        }
    }

    /// A sequence's last block in the cache is `to`, and no more `from`.
    pub(in crate::kv) fn move_user(&mut self, from: Option<NodeId>, to: Option<NodeId>) {
        if let Some(to) = to {
            self.trie.get_mut(to).num_users += 1;
        }
        if let Some(from) = from {
            self.trie.get_mut(from).num_users -= 1;
            self.prune(from, End::Evicted(EvictReason::Capacity));
        }
    }
}
