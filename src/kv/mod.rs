//! Blocks of the paged KV cache: who holds which, and where a token's keys and values go.
//!
//! Integers only: nothing here can reach a device, text, a model, a file or a clock. A *block* is [`BLOCK_SIZE`]
//! consecutive tokens' rows in all layers of one *layer group*; a *slot* is one token's row, `block x BLOCK_SIZE +
//! offset`; a *block table* lists a sequence's blocks in order. Layers that see the whole context form one group,
//! sliding-window layers another, each with a pool of its own.
//!
//! The invariant to remember: a block's reference count equals the number of tables that hold it, and zero means
//! free ([`KvManager::check`] verifies it with the others). A free block may still be known to the prefix cache, which
//! gives it up when its place is needed. Absent: contents.

mod chain;
mod check;
mod group;
mod manager;
mod pool;
mod prefix;
mod restore;
mod table;

pub use chain::SlotCopy;
pub use group::{GroupConfig, GroupStats};
pub use manager::{KvManager, TableId};
pub use pool::{BlockId, BlockPool, Released};
pub use prefix::{
    BlockView, CacheEvent, CacheStats, CachedView, EvictReason, Hit, Miss, MissReason, NodeId, Policy, PrefixView,
    Retention,
};
pub use restore::{RestoredBlock, Restoring};
pub use table::BlockTable;

/// Tokens in a block.
pub const BLOCK_SIZE: usize = 16;

/// Blocks that `num_tokens` tokens from position 0 on occupy.
pub const fn blocks_for(num_tokens: usize) -> usize {
    num_tokens.div_ceil(BLOCK_SIZE)
}
