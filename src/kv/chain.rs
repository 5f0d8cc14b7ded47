//! Sequences that use the prefix cache.

use std::rc::Rc;

use super::manager::Tables;
use super::prefix::{
    BlockView, CacheEvent, CacheStats, Hit, MAX_GROUPS, NodeId, Policy, PrefixCache, PrefixView, Retention, Stored,
};
use super::{BLOCK_SIZE, BlockId, BlockTable, KvManager, TableId};

/// A sequence's place in the prefix cache.
#[derive(Debug)]
pub(super) struct Chain {
    /// The node of the last of its blocks that is in the cache, or the root.
    pub(super) last: NodeId,
    /// Blocks of the sequence that are in the cache: the first ones.
    pub(super) num_blocks: usize,
    retention: Rc<Retention>,
    /// Rows that must be copied before the sequence can go on.
    pub(super) copy: Option<PendingCopy>,
}

impl Chain {
    /// The place behind `last`, the `num_blocks`-th node of a path.
    pub(super) fn new(last: NodeId, num_blocks: usize, retention: Rc<Retention>, copy: Option<PendingCopy>) -> Self {
        Self { last, num_blocks, retention, copy }
    }
}

/// The first rows of somebody's last block, to become the first of this sequence's next one. The sources are held.
#[derive(Debug)]
pub(super) struct PendingCopy {
    /// Per layer group.
    pub(super) sources: Vec<BlockId>,
    num_rows: usize,
}

/// Rows to be copied in a layer group: `num_rows` slots from `from` on, to those from `to` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotCopy {
    /// Layer group.
    pub group: usize,
    /// First slot to read.
    pub from: u32,
    /// First slot to write.
    pub to: u32,
    /// How many.
    pub num_rows: u32,
}

impl KvManager {
    /// Sets the time in milliseconds; cached blocks that outlived their time to live are dropped. It never goes back.
    pub fn set_now(&mut self, now_ms: u64) {
        self.cache.set_now(now_ms);
    }

    /// The longest part of a prompt that the cache has under a salt, but for the last token (K7).
    pub fn find(&self, salt: &str, tokens: &[u32]) -> Hit {
        self.cache.find(salt, tokens)
    }

    /// The same at a later time, of which nothing else takes note: what has expired by then is dropped from a copy.
    pub fn find_at(&self, now_ms: u64, salt: &str, tokens: &[u32]) -> Hit {
        self.cache.find_at(now_ms, salt, tokens)
    }

    /// The longest part of a hit for which no rows must be copied.
    pub fn without_tail(&self, hit: Hit) -> Hit {
        self.cache.without_tail(hit)
    }

    /// Whether a new sequence of `num_tokens` tokens that starts with `hit` finds the other blocks it needs among
    /// those that are free now, with pinned ones or without.
    pub fn admits_hit(&self, hit: &Hit, num_tokens: usize, breaks_pins: bool) -> bool {
        (0..self.num_groups()).all(|group| {
            let config = self.cache.groups[group].config;
            let first = config.num_unreachable(hit.num_tokens()).min(hit.nodes.len());
            let shared = &hit.nodes[first..];
            // Blocks that are free now and will be held are no more there to be taken.
            let is_counted = |&node: &NodeId| self.cache.counts_as_free(group, node, breaks_pins);
            let from_free =
                shared.iter().chain(hit.tail.as_ref().map(|(node, _)| node)).filter(|n| is_counted(n)).count();
            let fresh = config.least_blocks(num_tokens).saturating_sub(shared.len());
            fresh + from_free <= self.cache.num_free(group, breaks_pins)
        })
    }

    /// Tables for a new sequence that starts with `hit`, found since the last change, of `num_asked` tokens, and puts
    /// its blocks under `salt` in the cache. The first `hit.num_tokens()` need not be computed; if rows are to be
    /// copied, see [`KvManager::copies`].
    ///
    /// # Panics
    /// If the hit is not admitted.
    pub fn start(&mut self, salt: &str, hit: &Hit, num_asked: usize, retention: Rc<Retention>) -> TableId {
        let num_tokens = hit.num_tokens();
        let root = self.cache.root_or_new(salt);
        let last = hit.nodes.last().copied().unwrap_or(root);
        let mut groups = Vec::new();
        let mut sources = Vec::new();
        for group in 0..self.num_groups() {
            let first = self.cache.groups[group].config.num_unreachable(num_tokens).min(hit.nodes.len());
            // Entries before the window are never read.
            let mut blocks = vec![0; first];
            blocks.extend(hit.nodes[first..].iter().map(|&node| self.cache.block(node, group)));
            blocks[first..].iter().for_each(|&block| self.cache.hold(group, block));
            groups.push(BlockTable::new(blocks, first));
            if let Some((node, _)) = hit.tail {
                sources.push(self.cache.block(node, group));
                self.cache.hold(group, sources[group]);
            }
        }
        self.cache.move_user(None, Some(last));
        self.cache.note_hit(&hit.nodes, num_tokens, num_asked);
        hit.nodes.iter().for_each(|&node| self.cache.retain(node, &retention));
        let copy = hit.tail.map(|(_, num_rows)| PendingCopy { sources, num_rows });
        let num_blocks = hit.nodes.len();
        let chain = Some(Chain::new(last, num_blocks, retention, copy));
        let id = self.insert(Tables { groups, num_tokens: num_blocks * BLOCK_SIZE, chain });
        self.grow(id, num_tokens).expect("the hit is admitted");
        id
    }

    /// The rows that must be copied before the sequence's next tokens are computed.
    pub fn copies(&self, id: TableId) -> Vec<SlotCopy> {
        let tables = &self.tables[&id];
        let Some((chain, copy)) = tables.chain.as_ref().and_then(|chain| Some((chain, chain.copy.as_ref()?))) else {
            return Vec::new();
        };
        let slot = |block: BlockId| u32::try_from(block as usize * BLOCK_SIZE).expect("slots are numbered in 32 bits");
        let copy_in = |(group, &source): (usize, &BlockId)| SlotCopy {
            group,
            from: slot(source),
            to: tables.groups[group].slot(chain.num_blocks * BLOCK_SIZE),
            num_rows: u32::try_from(copy.num_rows).expect("a block has few rows"),
        };
        copy.sources.iter().enumerate().map(copy_in).collect()
    }

    /// Rows to be copied before the sequence's next tokens are computed, over all groups.
    pub fn num_copies(&self, id: TableId) -> usize {
        let copy = self.tables[&id].chain.as_ref().and_then(|chain| chain.copy.as_ref());
        copy.map_or(0, |copy| copy.num_rows * copy.sources.len())
    }

    /// Takes note that the first `num_computed` of a sequence's tokens are on the device, copied rows included. Blocks
    /// that are full now enter the cache; where it has the same already, that block takes the duplicate's place (K6).
    /// Returns the number of tokens that are new there.
    pub fn commit(&mut self, id: TableId, tokens: &[u32], num_computed: usize) -> usize {
        let tables = self.tables.get_mut(&id).expect("the id of a live sequence");
        let Some(chain) = &mut tables.chain else { return 0 };
        if let Some(copy) = chain.copy.take() {
            copy.sources.iter().enumerate().for_each(|(group, &block)| self.cache.release(group, block));
        }
        let mut num_new = 0;
        let first = chain.num_blocks * BLOCK_SIZE;
        while (chain.num_blocks + 1) * BLOCK_SIZE <= num_computed {
            let start = chain.num_blocks * BLOCK_SIZE;
            let is_new = advance(&mut self.cache, chain, &mut tables.groups, &tokens[start..start + BLOCK_SIZE]);
            num_new += if is_new { BLOCK_SIZE } else { 0 };
        }
        self.cache.note_stored(first, num_new);
        num_new
    }

    /// Ends a sequence whose first `num_computed` tokens are committed: its last, partly filled block enters the cache
    /// as a tail, of which later sequences copy rows, and everything is let go of. Returns the number of tokens that are
    /// new in the cache.
    pub fn finish(&mut self, id: TableId, tokens: &[u32], num_computed: usize) -> usize {
        let tables = self.tables.get_mut(&id).expect("the id of a live sequence");
        let mut num_new = 0;
        if let Some(chain) = &tables.chain {
            let start = chain.num_blocks * BLOCK_SIZE;
            let tail = &tokens[start.min(num_computed)..num_computed];
            // Rows that were to be copied are not there.
            let is_there = !tail.is_empty() && chain.copy.is_none();
            let mut last = chain.last;
            if is_there && !self.cache.has_tail(last, tail) {
                let stored = store(&mut self.cache, last, tail, &mut tables.groups, chain.num_blocks);
                last = stored.node;
                self.cache.retain(last, &chain.retention);
                self.cache.supersede(last);
                self.cache.note_stored(start, tail.len());
                num_new = tail.len();
            }
            self.cache.note_turn(last, tokens.len());
        }
        self.release(id);
        num_new
    }

    /// Ends a sequence that computed wrongly: nothing that it had in the cache stays there, unless others hold it.
    pub fn discard(&mut self, id: TableId) {
        let last = self.tables[&id].chain.as_ref().map(|chain| chain.last);
        self.release(id);
        if let Some(last) = last {
            self.cache.distrust(last);
        }
    }

    /// Lets go of what only a sequence's place in the cache holds.
    pub(super) fn leave(&mut self, chain: Chain) {
        if let Some(copy) = chain.copy {
            copy.sources.iter().enumerate().for_each(|(group, &block)| self.cache.release(group, block));
        }
        self.cache.move_user(Some(chain.last), None);
    }
}

/// Puts a sequence's next full block into the cache; true if it did not know the tokens.
pub(super) fn advance(cache: &mut PrefixCache, chain: &mut Chain, tables: &mut [BlockTable], block: &[u32]) -> bool {
    let stored = store(cache, chain.last, block, tables, chain.num_blocks);
    cache.move_user(Some(chain.last), Some(stored.node));
    cache.retain(stored.node, &chain.retention);
    if stored.is_new {
        cache.supersede(stored.node);
    }
    chain.last = stored.node;
    chain.num_blocks += 1;
    stored.is_new
}

/// Puts the block at `index` of each table that still holds it into the cache; the tables get the cache's own (K6).
fn store(cache: &mut PrefixCache, parent: NodeId, tokens: &[u32], tables: &mut [BlockTable], index: usize) -> Stored {
    let mut own = [None; MAX_GROUPS];
    tables.iter().zip(&mut own).for_each(|(table, own)| *own = table.held_at(index));
    let stored = cache.store(parent, tokens, own);
    for (table, block) in tables.iter_mut().zip(stored.blocks) {
        if let Some(block) = block {
            table.swap(index, block);
        }
    }
    stored
}

/// Looking at the cache and steering it.
impl KvManager {
    /// Chooses how free blocks of equal priority are given up.
    pub fn set_policy(&mut self, policy: Policy) {
        self.cache.set_policy(policy);
    }

    /// Pins what the cache has of a prefix, in full blocks; returns their tokens. Pinned blocks are given up last, and
    /// only if the oldest sequence could not go on otherwise.
    pub fn pin(&mut self, salt: &str, tokens: &[u32]) -> usize {
        self.cache.pin_prefix(salt, tokens)
    }

    /// Unpins a prefix, but for what a longer pinned one needs; returns the tokens that are not pinned any more.
    pub fn unpin(&mut self, salt: &str, tokens: &[u32]) -> usize {
        self.cache.unpin_prefix(salt, tokens)
    }

    /// Drops everything that begins with `tokens` and is not held; returns the number of blocks.
    pub fn evict(&mut self, salt: &str, tokens: &[u32]) -> usize {
        self.cache.evict_prefix(salt, tokens)
    }

    /// Drops everything that is not held; returns the number of blocks.
    pub fn clear(&mut self) -> usize {
        self.cache.clear()
    }

    /// Counters and present state of the cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.cache.cache_stats()
    }

    /// Every block of every pool, for drawing.
    pub fn blocks(&self) -> Vec<BlockView> {
        self.cache.blocks()
    }

    /// The cached prefixes that have a name or that nothing follows.
    pub fn prefixes(&self) -> Vec<PrefixView> {
        self.cache.prefixes()
    }

    /// What happened in the cache since the last call.
    pub fn take_events(&mut self) -> Vec<CacheEvent> {
        self.cache.take_events()
    }
}
