//! All block tables and the pools they draw from.

use std::collections::BTreeMap;

use super::{BLOCK_SIZE, BlockPool, BlockTable, blocks_for};

/// Size of one layer group's pool, and what its layers see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupConfig {
    /// Blocks in the pool.
    pub num_blocks: usize,
    /// Positions that a query sees, its own included; `None` means all before it.
    pub window: Option<usize>,
}

impl GroupConfig {
    /// Blocks that a lone sequence of `num_tokens` tokens needs at the least: all, or those its window can touch.
    fn least_blocks(&self, num_tokens: usize) -> usize {
        let all = blocks_for(num_tokens);
        self.window.map_or(all, |window| all.min((window - 1).div_ceil(BLOCK_SIZE) + 1))
    }

    /// Blocks at the start of a table that no query from `position` on can reach.
    fn num_unreachable(&self, position: usize) -> usize {
        self.window.map_or(0, |window| (position + 1).saturating_sub(window) / BLOCK_SIZE)
    }
}

/// How full one layer group's pool is, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct GroupStats {
    /// Blocks in the pool.
    pub num_blocks: usize,
    /// Held by some sequence.
    pub used: usize,
    /// Not held.
    pub free: usize,
    /// The most that were ever held at once.
    pub peak: usize,
}

/// Names the tables of one sequence; never used again after [`KvManager::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(u64);

#[derive(Debug)]
struct Group {
    config: GroupConfig,
    pool: BlockPool,
}

/// The tables of one sequence.
#[derive(Debug)]
struct Tables {
    /// One per layer group.
    groups: Vec<BlockTable>,
    /// Positions `0..num_tokens` have a slot (or had one, before a sliding window). Only later positions will be
    /// written through [`KvManager::grow`], so a block that ends here may be shared.
    num_tokens: usize,
}

/// Owns the pools and every sequence's tables.
#[derive(Debug)]
pub struct KvManager {
    groups: Vec<Group>,
    tables: BTreeMap<TableId, Tables>,
    next_id: u64,
}

impl KvManager {
    /// Empty tables over free pools, one per layer group.
    ///
    /// # Panics
    /// If there is no group, or a window of 0.
    pub fn new(groups: Vec<GroupConfig>) -> Self {
        assert!(!groups.is_empty(), "a model has at least one layer group");
        assert!(groups.iter().all(|group| group.window != Some(0)), "a window holds at least the query itself");
        let groups =
            groups.into_iter().map(|config| Group { config, pool: BlockPool::new(config.num_blocks) }).collect();
        Self { groups, tables: BTreeMap::new(), next_id: 0 }
    }

    /// Layer groups.
    pub fn num_groups(&self) -> usize {
        self.groups.len()
    }

    /// Tokens of the longest sequence that fits when nothing else is held.
    pub fn longest_sequence(&self) -> usize {
        let longest = |group: &Group| {
            let all = group.config.num_blocks;
            if group.config.least_blocks(usize::MAX) <= all { usize::MAX } else { all * BLOCK_SIZE }
        };
        self.groups.iter().map(longest).min().unwrap_or(0)
    }

    /// Whether a new sequence of `num_tokens` tokens finds all blocks it needs among those that are free now.
    pub fn admits(&self, num_tokens: usize) -> bool {
        self.groups.iter().all(|group| group.config.least_blocks(num_tokens) <= group.pool.num_free())
    }

    /// Empty tables for a new sequence.
    pub fn create(&mut self) -> TableId {
        self.insert(vec![BlockTable::default(); self.num_groups()], 0)
    }

    /// Tables for a new sequence that starts with the same `num_blocks` full blocks as `source`; both hold them.
    /// `None` if `source` has fewer full blocks, or a window has let go of some that the new sequence would read.
    pub fn fork(&mut self, source: TableId, num_blocks: usize) -> Option<TableId> {
        let source = &self.tables[&source];
        let num_tokens = num_blocks * BLOCK_SIZE;
        if num_tokens > source.num_tokens {
            return None;
        }
        let prefix =
            |(group, table): (&Group, &BlockTable)| table.prefix(num_blocks, group.config.num_unreachable(num_tokens));
        let prefixes = self.groups.iter().zip(&source.groups).map(prefix).collect::<Option<Vec<_>>>()?;
        for (group, table) in self.groups.iter_mut().zip(&prefixes) {
            table.held().iter().for_each(|&block| group.pool.hold(block));
        }
        Some(self.insert(prefixes, num_tokens))
    }

    fn insert(&mut self, groups: Vec<BlockTable>, num_tokens: usize) -> TableId {
        let id = TableId(self.next_id);
        self.next_id += 1;
        self.tables.insert(id, Tables { groups, num_tokens });
        id
    }

    /// Tokens that the sequence can reach with the blocks that are free now.
    pub fn reach(&self, id: TableId) -> usize {
        let reach = |(group, table): (&Group, &BlockTable)| (table.blocks().len() + group.pool.num_free()) * BLOCK_SIZE;
        self.groups.iter().zip(&self.tables[&id].groups).map(reach).min().unwrap_or(0)
    }

    /// Gives positions up to `num_tokens` a slot in every group; `None`, with nothing changed, when blocks are
    /// missing. Positions from the old end on may then be written. A sequence that is long enough stays as it is.
    pub fn grow(&mut self, id: TableId, num_tokens: usize) -> Option<()> {
        if num_tokens > self.reach(id) {
            return None;
        }
        let tables = self.tables.get_mut(&id).expect("the id of a live sequence");
        for (group, table) in self.groups.iter_mut().zip(&mut tables.groups) {
            for _ in 0..table.missing(num_tokens) {
                table.push(group.pool.take().expect("reach() counted the free blocks"));
            }
        }
        tables.num_tokens = tables.num_tokens.max(num_tokens);
        Some(())
    }

    /// Frees blocks of sliding groups that no query at `position` or later can reach; `position` is the first one
    /// still to be computed.
    pub fn release_unreachable(&mut self, id: TableId, position: usize) {
        let tables = self.tables.get_mut(&id).expect("the id of a live sequence");
        for (group, table) in self.groups.iter_mut().zip(&mut tables.groups) {
            let pool = &mut group.pool;
            table.let_go(group.config.num_unreachable(position)).iter().for_each(|&block| pool.release(block));
        }
    }

    /// Lets go of all blocks of a sequence, from the tail on, and forgets it.
    pub fn release(&mut self, id: TableId) {
        let tables = self.tables.remove(&id).expect("the id of a live sequence");
        for (group, table) in self.groups.iter_mut().zip(&tables.groups) {
            table.held().iter().rev().for_each(|&block| group.pool.release(block));
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
        let stats = |Group { pool, .. }: &Group| GroupStats {
            num_blocks: pool.num_blocks(),
            used: pool.num_used(),
            free: pool.num_free(),
            peak: pool.peak_used(),
        };
        self.groups.iter().map(stats).collect()
    }

    /// Verifies what must always hold: K1 (reference counts), K2 (a block that will be written is held once) and
    /// the part of K8 that a state can show (a table has exactly the blocks that its tokens need).
    ///
    /// # Errors
    /// The first invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        for (index, group) in self.groups.iter().enumerate() {
            let mut holders = vec![0; group.pool.num_blocks()];
            for (id, tables) in &self.tables {
                let table = &tables.groups[index];
                table.held().iter().for_each(|&block| holders[block as usize] += 1);
                if table.blocks().len() != blocks_for(tables.num_tokens) {
                    let len = table.blocks().len();
                    return Err(format!("K8: {id:?} has {len} blocks for {} tokens", tables.num_tokens));
                }
                if group.config.window.is_none() && table.num_released() > 0 {
                    return Err(format!("K8: {id:?} has let go of blocks that see the whole context"));
                }
            }
            group.pool.check(&holders).map_err(|problem| format!("group {index}: {problem}"))?;
            for (id, tables) in &self.tables {
                let is_partial = !tables.num_tokens.is_multiple_of(BLOCK_SIZE);
                if let (true, Some(&block)) = (is_partial, tables.groups[index].held().last())
                    && group.pool.ref_count(block) != 1
                {
                    return Err(format!("K2: block {block} is still written by {id:?} and shared"));
                }
            }
        }
        Ok(())
    }
}
