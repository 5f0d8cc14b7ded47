//! All block tables and the pools they draw from.

use std::collections::BTreeMap;

use super::chain::Chain;
use super::prefix::PrefixCache;
use super::{BLOCK_SIZE, BlockTable, GroupConfig, GroupStats};

/// Names the tables of one sequence; never used again after [`KvManager::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(u64);

/// The tables of one sequence.
#[derive(Debug)]
pub(super) struct Tables {
    /// One per layer group.
    pub(super) groups: Vec<BlockTable>,
    /// Positions `0..num_tokens` have a slot (or had one, before a sliding window). Only later positions will be
    /// written through [`KvManager::grow`], so a block that ends here may be shared.
    pub(super) num_tokens: usize,
    /// Its place in the prefix cache, if it uses it.
    pub(super) chain: Option<Chain>,
}

/// Owns the pools, what their blocks hold, and every sequence's tables.
#[derive(Debug)]
pub struct KvManager {
    pub(super) cache: PrefixCache,
    pub(super) tables: BTreeMap<TableId, Tables>,
    next_id: u64,
}

impl KvManager {
    /// Empty tables over free pools, one per layer group.
    ///
    /// # Panics
    /// If there is no group or more than two, or a window of 0.
    pub fn new(groups: Vec<GroupConfig>) -> Self {
        assert!(!groups.is_empty(), "a model has at least one layer group");
        assert!(groups.iter().all(|group| group.window != Some(0)), "a window holds at least the query itself");
        Self { cache: PrefixCache::new(groups), tables: BTreeMap::new(), next_id: 0 }
    }

    /// Layer groups.
    pub fn num_groups(&self) -> usize {
        self.cache.groups.len()
    }

    /// Tokens of the longest sequence that fits when nothing else is held.
    pub fn longest_sequence(&self) -> usize {
        let longest = |config: GroupConfig| {
            let all = config.num_blocks;
            if config.least_blocks(usize::MAX) <= all { usize::MAX } else { all * BLOCK_SIZE }
        };
        self.cache.groups.iter().map(|group| longest(group.config)).min().unwrap_or(0)
    }

    /// Whether a new sequence of `num_tokens` tokens finds all blocks it needs among those that are free now.
    pub fn admits(&self, num_tokens: usize) -> bool {
        (0..self.num_groups())
            .all(|group| self.cache.groups[group].config.least_blocks(num_tokens) <= self.cache.num_free(group, true))
    }

    /// Empty tables for a new sequence that does not use the prefix cache.
    pub fn create(&mut self) -> TableId {
        self.insert(Tables { groups: vec![BlockTable::default(); self.num_groups()], num_tokens: 0, chain: None })
    }

    /// Tables for a new sequence that starts with the same `num_blocks` full blocks as `source`; both hold them.
    /// `None` if `source` has fewer full blocks, or a window has let go of some that the new sequence would read.
    pub fn fork(&mut self, source: TableId, num_blocks: usize) -> Option<TableId> {
        let source = &self.tables[&source];
        let num_tokens = num_blocks * BLOCK_SIZE;
        if num_tokens > source.num_tokens {
            return None;
        }
        let mut groups = Vec::new();
        for (group, table) in self.cache.groups.iter().zip(&source.groups) {
            groups.push(table.prefix(num_blocks, group.config.num_unreachable(num_tokens))?);
        }
        for (group, table) in groups.iter().enumerate() {
            table.held().iter().for_each(|&block| self.cache.hold(group, block));
        }
        Some(self.insert(Tables { groups, num_tokens, chain: None }))
    }

    pub(super) fn insert(&mut self, tables: Tables) -> TableId {
        let id = TableId(self.next_id);
        self.next_id += 1;
        self.tables.insert(id, tables);
        id
    }

    /// Tokens that the sequence can reach with the blocks that are free now, pinned ones included.
    pub fn reach(&self, id: TableId) -> usize {
        self.reach_with(id, true)
    }

    /// Tokens that the sequence can reach with the blocks that are free now, with pinned ones or without.
    pub fn reach_with(&self, id: TableId, breaks_pins: bool) -> usize {
        let reach = |(group, table): (usize, &BlockTable)| {
            (table.blocks().len() + self.cache.num_free(group, breaks_pins)) * BLOCK_SIZE
        };
        self.tables[&id].groups.iter().enumerate().map(reach).min().unwrap_or(0)
    }

    /// Gives positions up to `num_tokens` a slot in every group; `None`, with nothing changed, when blocks are
    /// missing. Positions from the old end on may then be written. A sequence that is long enough stays as it is.
    pub fn grow(&mut self, id: TableId, num_tokens: usize) -> Option<()> {
        if num_tokens > self.reach(id) {
            return None;
        }
        let tables = self.tables.get_mut(&id).expect("the id of a live sequence");
        for (group, table) in tables.groups.iter_mut().enumerate() {
            for _ in 0..table.missing(num_tokens) {
                table.push(self.cache.take(group).expect("reach() counted the free blocks"));
            }
        }
        tables.num_tokens = tables.num_tokens.max(num_tokens);
        Some(())
    }

    /// Frees blocks of sliding groups that no query at `position` or later can reach; `position` is the first one
    /// still to be computed.
    pub fn release_unreachable(&mut self, id: TableId, position: usize) {
        let tables = self.tables.get_mut(&id).expect("the id of a live sequence");
        for (group, table) in tables.groups.iter_mut().enumerate() {
            let end = self.cache.groups[group].config.num_unreachable(position);
            table.let_go(end).iter().for_each(|&block| self.cache.release(group, block));
        }
    }

    /// Lets go of all blocks of a sequence, from the tail on, and forgets it. What is in the prefix cache stays there.
    pub fn release(&mut self, id: TableId) {
        let tables = self.tables.remove(&id).expect("the id of a live sequence");
        for (group, table) in tables.groups.iter().enumerate() {
            table.held().iter().rev().for_each(|&block| self.cache.release(group, block));
        }
        if let Some(chain) = tables.chain {
            self.leave(chain);
        }
    }

    /// The block table of a sequence in one layer group.
    pub fn table(&self, id: TableId, group: usize) -> &BlockTable {
        &self.tables[&id].groups[group]
    }

    /// Sequences that have tables.
    pub fn num_sequences(&self) -> usize {
        self.tables.len()
    }

    /// How full each pool is.
    pub fn stats(&self) -> Vec<GroupStats> {
        let stats = |group: &super::prefix::Group| GroupStats {
            num_blocks: group.pool.num_blocks(),
            used: group.pool.num_used(),
            free: group.pool.num_free(),
            empty: group.pool.num_empty(),
            pinned: group.num_pinned_free(),
            peak: group.pool.peak_used(),
        };
        self.cache.groups.iter().map(stats).collect()
    }
}
