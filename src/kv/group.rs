//! What a layer group is, and how full.

use super::{BLOCK_SIZE, blocks_for};

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
    pub(super) fn least_blocks(&self, num_tokens: usize) -> usize {
        let all = blocks_for(num_tokens);
        self.window.map_or(all, |window| all.min((window - 1).div_ceil(BLOCK_SIZE) + 1))
    }

    /// Blocks at the start of a table that no query from `position` on can reach.
    pub(super) fn num_unreachable(&self, position: usize) -> usize {
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
    /// Not held, those with cached contents included.
    pub free: usize,
    /// Not held and empty.
    pub empty: usize,
    /// Not held, with cached contents that are pinned.
    pub pinned: usize,
    /// The most that were ever held at once.
    pub peak: usize,
}
