//! The blocks of one layer group and their reference counts.

use std::collections::VecDeque;

use super::{BLOCK_SIZE, NodeId};

/// Number of a block in its pool, `0..num_blocks`.
pub type BlockId = u32;

/// What a block becomes when it is let go of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// Somebody else still holds it.
    Held,
    /// It is free and empty.
    Empty,
    /// It is free, and its contents stay in the prefix cache.
    Cached,
}

/// Hands out blocks; knows how many tables hold each, not which.
///
/// A block is held, or free and empty, or free with contents that the prefix cache knows. All operations are O(1) but
/// [`BlockPool::check`]. The empty block that has been free for longest is taken first.
#[derive(Debug, Clone)]
pub struct BlockPool {
    /// Tables that hold the block; 0 means free.
    ref_counts: Vec<u32>,
    /// The prefix cache's name for the block's contents, if it is in the cache.
    nodes: Vec<Option<NodeId>>,
    /// Free blocks that are not cached, the one freed longest ago in front.
    free: VecDeque<BlockId>,
    /// Free blocks that are cached.
    num_cached_free: usize,
    /// The most blocks that were ever held at once.
    peak_used: usize,
}

impl BlockPool {
    /// A pool of free blocks.
    ///
    /// # Panics
    /// If the slots of that many blocks cannot be numbered in 32 bits.
    pub fn new(num_blocks: usize) -> Self {
        assert!(num_blocks <= (u32::MAX as usize) / BLOCK_SIZE, "{num_blocks} blocks have slots beyond u32");
        let free = (0..).take(num_blocks).collect();
        let nodes = vec![None; num_blocks];
        Self { ref_counts: vec![0; num_blocks], nodes, free, num_cached_free: 0, peak_used: 0 }
    }

    /// Takes an empty block, held once; `None` when there is none.
    pub fn take(&mut self) -> Option<BlockId> {
        let block = self.free.pop_front()?;
        self.ref_counts[block as usize] = 1;
        self.peak_used = self.peak_used.max(self.num_used());
        Some(block)
    }

    /// Holds a block once more, for another table; true if it was free (and cached).
    ///
    /// # Panics
    /// If the block is free and empty.
    pub fn hold(&mut self, block: BlockId) -> bool {
        let count = &mut self.ref_counts[block as usize];
        let was_free = *count == 0;
        assert!(!was_free || self.nodes[block as usize].is_some(), "block {block} is free and cannot be shared");
        *count += 1;
        self.num_cached_free -= usize::from(was_free);
        self.peak_used = self.peak_used.max(self.num_used());
        was_free
    }

    /// Lets go of a block once; the last release frees it.
    ///
    /// # Panics
    /// If the block is free already.
    pub fn release(&mut self, block: BlockId) -> Released {
        let count = &mut self.ref_counts[block as usize];
        assert!(*count > 0, "block {block} is released twice");
        *count -= 1;
        if *count > 0 {
            return Released::Held;
        }
        if self.nodes[block as usize].is_some() {
            self.num_cached_free += 1;
            return Released::Cached;
        }
        self.free.push_back(block);
        Released::Empty
    }

    /// Puts a held block's contents in the prefix cache, under the name `node`.
    ///
    /// # Panics
    /// If the block is free, or cached already.
    pub fn keep(&mut self, block: BlockId, node: NodeId) {
        assert!(self.ref_counts[block as usize] > 0, "block {block} is free: what it holds is not known");
        let old = self.nodes[block as usize].replace(node);
        assert_eq!(old, None, "block {block} is in the prefix cache already");
    }

    /// Takes a free block's contents out of the prefix cache.
    ///
    /// # Panics
    /// If the block is held, or not cached.
    pub fn forget(&mut self, block: BlockId) {
        assert_eq!(self.ref_counts[block as usize], 0, "block {block} is held and cannot be evicted");
        let old = self.nodes[block as usize].take();
        assert!(old.is_some(), "block {block} is not in the prefix cache");
        self.num_cached_free -= 1;
        self.free.push_back(block);
    }

    /// The prefix cache's name for the block's contents.
    pub fn node(&self, block: BlockId) -> Option<NodeId> {
        self.nodes[block as usize]
    }

    /// Tables that hold the block.
    pub fn ref_count(&self, block: BlockId) -> u32 {
        self.ref_counts[block as usize]
    }

    /// Blocks, free or held.
    pub fn num_blocks(&self) -> usize {
        self.ref_counts.len()
    }

    /// Blocks that nobody holds, cached ones included.
    pub fn num_free(&self) -> usize {
        self.free.len() + self.num_cached_free
    }

    /// Blocks that can be taken without emptying one.
    pub fn num_empty(&self) -> usize {
        self.free.len()
    }

    /// Blocks that some table holds.
    pub fn num_used(&self) -> usize {
        self.num_blocks() - self.num_free()
    }

    /// The most blocks that were ever held at once.
    pub fn peak_used(&self) -> usize {
        self.peak_used
    }

    /// Verifies K1 given how many tables hold each block: counts agree, and exactly the unheld ones are free.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self, holders: &[u32]) -> Result<(), String> {
        if holders != self.ref_counts {
            return Err(format!("K1: reference counts {:?}, held by tables {holders:?}", self.ref_counts));
        }
        let mut is_free = vec![false; self.num_blocks()];
        for &block in &self.free {
            let index = block as usize;
            let is_wrong = self.ref_counts[index] != 0 || self.nodes[index].is_some();
            if is_wrong || std::mem::replace(&mut is_free[index], true) {
                return Err(format!("K1: block {block} is in the free list while held or cached, or twice"));
            }
        }
        let mut num_cached_free = 0;
        for (block, &is_listed) in is_free.iter().enumerate() {
            let is_unheld = self.ref_counts[block] == 0;
            let is_cached_free = is_unheld && self.nodes[block].is_some();
            num_cached_free += usize::from(is_cached_free);
            if is_unheld != (is_listed || is_cached_free) {
                return Err(format!("K1: block {block} is neither free nor held"));
            }
        }
        if num_cached_free != self.num_cached_free {
            return Err(format!("K1: {num_cached_free} cached blocks are free, {} counted", self.num_cached_free));
        }
        Ok(())
    }
}
