//! Who is given up first.

use super::trie::{Node, NodeId};
use crate::kv::BLOCK_SIZE;

/// How the cache chooses among free blocks of equal priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// The block that was used longest ago.
    #[default]
    Lru,
    /// Tail-Optimized LRU (Zhang, Li, Moallemi and Peng, "Tail-Optimized Caching for LLM Inference", 2025, Algorithm 1):
    /// first those blocks, least recently used first, without which the conversation's next turn would still meet the
    /// target; then as `Lru`. Long conversations keep their blocks at the cost of the ends of short ones.
    TailAware {
        /// Time to first token to be met.
        ttft_target_ms: u32,
        /// Tokens that the model computes in a second.
        prefill_tokens_per_s: u32,
        /// New tokens that a conversation's next turn is expected to bring.
        next_turn_tokens: u32,
    },
}

impl Policy {
    /// Whether the next turn of a conversation of `longest` tokens would miss the target if it had to compute from
    /// `start` on.
    fn needs(self, start: usize, longest: usize) -> bool {
        let Self::TailAware { ttft_target_ms, prefill_tokens_per_s, next_turn_tokens } = self else {
            return true;
        };
        // Compared in thousandths of a token, so that nothing is rounded.
        let affordable = u128::from(ttft_target_ms) * u128::from(prefill_tokens_per_s);
        let to_compute = (longest as u128 + u128::from(next_turn_tokens)).saturating_sub(start as u128);
        to_compute * 1000 > affordable
    }
}

/// The place of a free block in the order of eviction, the first to go first. Expired blocks are not in it: they are
/// dropped as soon as the time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    is_pinned: bool,
    priority: i32,
    is_needed: bool,
    tick: u64,
    pub(super) node: NodeId,
}

impl Rank {
    pub(super) fn new(policy: Policy, id: NodeId, node: &Node, group: usize) -> Self {
        Self {
            is_pinned: node.is_pinned,
            priority: node.priority,
            is_needed: policy.needs(node.depth * BLOCK_SIZE, node.longest),
            tick: node.slots[group].tick,
            node: id,
        }
    }
}
