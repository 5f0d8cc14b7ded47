//! The blocks of one sequence in one layer group.

use super::{BLOCK_SIZE, BlockId, blocks_for};

/// A list of blocks in the order of their positions; it only ever grows at the end (K8). An entry changes only when its
/// block turns out to be a duplicate of one in the prefix cache, which then takes its place (K6).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockTable {
    /// Indexed by `position / BLOCK_SIZE`.
    blocks: Vec<BlockId>,
    /// This many entries in front are let go: they lie wholly before the sliding window and are not read any more.
    num_released: usize,
}

impl BlockTable {
    /// A table that starts with `blocks`, of which the first `num_released` are let go.
    pub(super) fn new(blocks: Vec<BlockId>, num_released: usize) -> Self {
        Self { blocks, num_released }
    }

    /// The entry at `index`, if it is held.
    pub fn held_at(&self, index: usize) -> Option<BlockId> {
        (index >= self.num_released).then(|| self.blocks.get(index).copied()).flatten()
    }

    /// Puts the cache's own block in the place of its duplicate (K6).
    pub(super) fn swap(&mut self, index: usize, block: BlockId) {
        assert!(index >= self.num_released, "entry {index} is let go");
        self.blocks[index] = block;
    }

    /// All entries, those that were let go included (their contents belong to somebody else by now).
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// The entries that are held.
    pub fn held(&self) -> &[BlockId] {
        &self.blocks[self.num_released..]
    }

    /// Entries in front that were let go.
    pub fn num_released(&self) -> usize {
        self.num_released
    }

    /// The slot of a position.
    ///
    /// # Panics
    /// If the table has no block for the position, or has let it go.
    pub fn slot(&self, position: usize) -> u32 {
        let index = position / BLOCK_SIZE;
        assert!(
            (self.num_released..self.blocks.len()).contains(&index),
            "position {position} is outside the table's blocks {}..{}",
            self.num_released,
            self.blocks.len()
        );
        let slot = self.blocks[index] as usize * BLOCK_SIZE + position % BLOCK_SIZE;
        u32::try_from(slot).expect("a pool's slots are numbered in 32 bits")
    }

    /// Blocks that are missing before the table reaches `num_tokens` tokens.
    pub(super) fn missing(&self, num_tokens: usize) -> usize {
        blocks_for(num_tokens).saturating_sub(self.blocks.len())
    }

    /// Appends a block.
    pub(super) fn push(&mut self, block: BlockId) {
        self.blocks.push(block);
    }

    /// Lets go of the entries before `end`; returns those that were still held, in order.
    pub(super) fn let_go(&mut self, end: usize) -> &[BlockId] {
        let start = self.num_released;
        self.num_released = end.clamp(start, self.blocks.len());
        &self.blocks[start..self.num_released]
    }

    /// The first `num_blocks` entries as a table of their own that has let go of `num_released`; `None` if this
    /// table has let go of more.
    pub(super) fn prefix(&self, num_blocks: usize, num_released: usize) -> Option<Self> {
        let can_share = num_released == num_blocks || self.num_released <= num_released;
        can_share.then(|| Self { blocks: self.blocks[..num_blocks].to_vec(), num_released })
    }
}
