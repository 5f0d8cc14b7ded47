//! The blocks of one layer group and their reference counts.

use std::collections::VecDeque;

use super::BLOCK_SIZE;

/// Number of a block in its pool, `0..num_blocks`.
pub type BlockId = u32;

/// Hands out blocks; knows how many tables hold each, not which.
///
/// All operations are O(1) but [`BlockPool::check`]. The block that has been free for longest is taken first.
#[derive(Debug, Clone)]
pub struct BlockPool {
    /// Tables that hold the block; 0 exactly when it is in `free`.
    ref_counts: Vec<u32>,
    /// Free blocks, the one freed longest ago in front.
    free: VecDeque<BlockId>,
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
        Self { ref_counts: vec![0; num_blocks], free, peak_used: 0 }
    }

    /// Takes a free block, held once; `None` when there is none.
    pub fn take(&mut self) -> Option<BlockId> {
        let block = self.free.pop_front()?;
        self.ref_counts[block as usize] = 1;
        self.peak_used = self.peak_used.max(self.num_used());
        Some(block)
    }

    /// Holds a block once more, for another table.
    ///
    /// # Panics
    /// If the block is free.
    pub fn hold(&mut self, block: BlockId) {
        let count = &mut self.ref_counts[block as usize];
        assert!(*count > 0, "block {block} is free and cannot be shared");
        *count += 1;
    }

    /// Lets go of a block once; the last release frees it.
    ///
    /// # Panics
    /// If the block is free already.
    pub fn release(&mut self, block: BlockId) {
        let count = &mut self.ref_counts[block as usize];
        assert!(*count > 0, "block {block} is released twice");
        *count -= 1;
        if *count == 0 {
            self.free.push_back(block);
        }
    }

    /// Tables that hold the block.
    pub fn ref_count(&self, block: BlockId) -> u32 {
        self.ref_counts[block as usize]
    }

    /// Blocks, free or held.
    pub fn num_blocks(&self) -> usize {
        self.ref_counts.len()
    }

    /// Blocks that can be taken.
    pub fn num_free(&self) -> usize {
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
            if self.ref_counts[block as usize] != 0 || std::mem::replace(&mut is_free[block as usize], true) {
                return Err(format!("K1: block {block} is in the free list while held, or twice"));
            }
        }
        match self.ref_counts.iter().zip(&is_free).position(|(&count, &free)| (count == 0) != free) {
            Some(block) => Err(format!("K1: block {block} is neither free nor held")),
            None => Ok(()),
        }
    }
}
