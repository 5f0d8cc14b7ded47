//! How much of a prompt is there already.

use super::PrefixCache;
use super::journal::{Miss, MissReason};
use super::trie::{Key, NodeId, key, path_hash, salt_hash};
use crate::kv::BLOCK_SIZE;

/// Children that are looked at on either side when a sliding window has given up the block of the one most alike.
const MAX_NEIGHBOURS: usize = 8;

/// The part of a prompt that need not be computed. Good until anything changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hit {
    /// Nodes of the full blocks to share, in order.
    pub(in crate::kv) nodes: Vec<NodeId>,
    /// A node whose first rows go on where these end, to be copied, and how many.
    pub(in crate::kv) tail: Option<(NodeId, usize)>,
    /// Why it is not more; `None` if it is all that can be reused, or the prompt goes on where the cache ends.
    pub miss: Option<Miss>,
}

impl Hit {
    /// Tokens that need not be computed.
    pub fn num_tokens(&self) -> usize {
        self.nodes.len() * BLOCK_SIZE + self.num_rows()
    }

    /// Rows that must be copied in each layer group.
    pub fn num_rows(&self) -> usize {
        self.tail.map_or(0, |(_, num_rows)| num_rows)
    }
}

impl PrefixCache {
    /// The longest prefix of `tokens` that is there in every group. The last token is never part of it: its logits are
    /// wanted (K7).
    pub(in crate::kv) fn find(&self, salt: &str, tokens: &[u32]) -> Hit {
        let limit = tokens.len().saturating_sub(1);
        let Some(root) = self.trie.root(salt) else {
            return Hit { miss: self.miss_at_root(salt, tokens), ..Hit::default() };
        };
        let mut nodes = Vec::new();
        let mut last = root;
        while (nodes.len() + 1) * BLOCK_SIZE <= limit {
            let start = nodes.len() * BLOCK_SIZE;
            let Some(node) = self.trie.child(last, &key(&tokens[start..start + BLOCK_SIZE])) else { break };
            nodes.push(node);
            last = node;
        }
        let num_known = nodes.len();
        let mut hit = Hit { nodes, tail: None, miss: None };
        loop {
            let start = hit.nodes.len() * BLOCK_SIZE;
            let parent = hit.nodes.last().copied().unwrap_or(root);
            hit.tail = self.tail(parent, &key(&tokens[start..limit.min(start + BLOCK_SIZE)]));
            if !self.has_windows(&hit) {
                hit.tail = None;
            }
            if self.has_windows(&hit) {
                break;
            }
            hit.nodes.pop();
        }
        hit.miss = self.miss(salt, root, last, num_known, &hit, tokens);
        hit
    }

    /// What [`PrefixCache::find`] would find at a later time.
    pub(in crate::kv) fn find_at(&self, now_ms: u64, salt: &str, tokens: &[u32]) -> Hit {
        if self.expiries.first().is_none_or(|&(expires_ms, _)| expires_ms > now_ms) {
            return self.find(salt, tokens);
        }
        let mut later = self.clone();
        later.set_now(now_ms);
        later.find(salt, tokens)
    }

    /// The child of `parent` that begins most like `key` and still has its blocks.
    fn tail(&self, parent: NodeId, key: &Key) -> Option<(NodeId, usize)> {
        let is_whole = |node: NodeId| (0..self.groups.len()).all(|g| self.trie.get(node).slots[g].block.is_some());
        let usable = self.trie.nearest(parent, key).into_iter().filter_map(|side| {
            side.take(MAX_NEIGHBOURS).take_while(|(_, len)| *len > 0).find(|(node, _)| is_whole(*node))
        });
        usable.max_by_key(|(_, len)| *len)
    }

    /// The hit without rows to copy. A window then reaches further back, so it may lose blocks as well.
    pub(in crate::kv) fn without_tail(&self, mut hit: Hit) -> Hit {
        hit.tail = None;
        while !self.has_windows(&hit) {
            hit.nodes.pop();
        }
        hit
    }

    /// Whether the rows of a tail after `parent` can be copied from what is there already.
    pub(in crate::kv) fn has_tail(&self, parent: NodeId, tokens: &[u32]) -> bool {
        self.tail(parent, &key(tokens)).is_some_and(|(_, len)| len == tokens.len())
    }

    /// Whether every block that a query right after the hit can see is there.
    fn has_windows(&self, hit: &Hit) -> bool {
        (0..self.groups.len()).all(|group| {
            let first = self.groups[group].config.num_unreachable(hit.num_tokens()).min(hit.nodes.len());
            hit.nodes[first..].iter().all(|&node| self.trie.get(node).slots[group].block.is_some())
        })
    }

    /// Why a hit is not longer. `last` is the last node that the trie knows for the prompt, after `num_known` blocks.
    fn miss(
        &self,
        salt: &str,
        root: NodeId,
        last: NodeId,
        num_known: usize,
        hit: &Hit,
        tokens: &[u32],
    ) -> Option<Miss> {
        let position = hit.num_tokens();
        if position + 1 >= tokens.len() {
            return None;
        }
        let miss = |reason| Miss { position, reason, expected: None, found: tokens.get(position).copied() };
        if hit.nodes.len() < num_known {
            // The trie knows it, but a sliding window's blocks are gone.
            return Some(miss(MissReason::Evicted));
        }
        let start = num_known * BLOCK_SIZE;
        let wanted = key(&tokens[start..tokens.len().min(start + BLOCK_SIZE)]);
        let hash = path_hash(self.trie.get(last).path_hash, &wanted);
        if let Some(reason) = self.journal.cause_of_death(hash) {
            return Some(miss(reason));
        }
        let most_alike = self.trie.nearest(last, &wanted).into_iter().filter_map(|mut side| side.next());
        let Some((other, len)) = most_alike.max_by_key(|(_, len)| *len) else {
            return if position == 0 { self.miss_at_root(salt, tokens) } else { None };
        };
        if last == root && len == 0 {
            return self.miss_at_root(salt, tokens);
        }
        if hit.num_rows() < len.min(tokens.len() - 1 - start) {
            return Some(miss(MissReason::Evicted));
        }
        let entry = self.trie.get(other).key.get(len).copied().unwrap_or(0);
        let (position, found) = (start + len, tokens.get(start + len).copied());
        let differs = Miss { position, reason: MissReason::Differs, expected: entry.checked_sub(1), found };
        // A tail that ends where the prompt goes on is not a difference.
        (entry != 0).then_some(differs)
    }

    fn miss_at_root(&self, salt: &str, tokens: &[u32]) -> Option<Miss> {
        let cold = Miss { position: 0, reason: MissReason::Cold, expected: None, found: tokens.first().copied() };
        let buried = || {
            let root = salt_hash(salt);
            let first = key(&tokens[..tokens.len().min(BLOCK_SIZE)]);
            let reason = self.journal.cause_of_death(path_hash(root, &first))?;
            Some(Miss { reason, ..cold })
        };
        buried().or_else(|| self.salted(salt, tokens)).or(Some(cold))
    }

    /// The miss of a prompt whose first block is there, under another salt.
    fn salted(&self, salt: &str, tokens: &[u32]) -> Option<Miss> {
        let first = key(tokens.get(..BLOCK_SIZE)?);
        let own = self.trie.root(salt);
        let is_there = self.trie.roots().any(|root| Some(root) != own && self.trie.child(root, &first).is_some());
        let found = tokens.first().copied();
        is_there.then_some(Miss { position: 0, reason: MissReason::Salted, expected: None, found })
    }
}
