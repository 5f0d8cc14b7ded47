//! The prefix cache: which free blocks still hold what, exactly.
//!
//! An exact trie of token blocks. A *node* is a block's worth of tokens after its parent's, and knows the physical block
//! that holds their keys and values in each layer group. Nothing is found by a hash: every lookup compares all tokens,
//! so nobody can be answered from somebody else's conversation. A node of fewer tokens is a *tail*: a sequence's last,
//! partly filled block, whose rows a later sequence may copy, never share.
//!
//! The invariant to remember: in a group that sees the whole context a node is given up after its children, never
//! before, because a block without those in front of it is worth nothing. Absent: text, time (a number that the caller
//! sets) and contents (the device has them).

mod cache;
mod check;
mod journal;
mod lookup;
mod order;
mod steer;
mod trie;
mod view;

pub(super) use cache::{Group, PrefixCache, Stored};
pub use journal::{CacheEvent, CacheStats, EvictReason, Miss, MissReason};
pub use lookup::Hit;
pub use order::Policy;
pub(super) use trie::MAX_GROUPS;
pub use trie::NodeId;
pub use view::{BlockView, CachedView, PrefixView};

/// How long a request wants its blocks kept, and how much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Blocks of lower priority are given up first.
    pub priority: i32,
    /// Blocks that are not used for so long are dropped; `None` keeps them until their place is needed.
    pub ttl_ms: Option<u64>,
    /// Positions up to which another time to live applies, each with its time in milliseconds. A block that several
    /// reach is kept for the longest of theirs.
    pub breakpoints: Vec<(usize, u64)>,
    /// Pin the blocks before this position: they are given up last, and only if nothing could run otherwise.
    pub pin_tokens: usize,
    /// What the prefix that ends here is called in listings.
    pub name: Option<(usize, String)>,
}

/// The time to live of blocks that have none.
pub(in crate::kv) const FOREVER: u64 = u64::MAX;

impl Retention {
    /// The time to live of the block that starts at `position`.
    fn ttl_at(&self, position: usize) -> u64 {
        let reaching = self.breakpoints.iter().filter(|(end, _)| position < *end).map(|(_, ttl_ms)| *ttl_ms);
        reaching.max().or(self.ttl_ms).unwrap_or(FOREVER)
    }
}
