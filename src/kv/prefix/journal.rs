//! What happened: events to be fetched, counters, and why something is gone.

use std::collections::{HashMap, VecDeque};

use crate::kv::BLOCK_SIZE;

/// Events that wait to be fetched, at most; older ones are dropped and counted.
const MAX_EVENTS: usize = 4096;

/// Nodes whose end is remembered, at most.
const MAX_TOMBSTONES: usize = 16_384;

/// Why a block was given up before its time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvictReason {
    /// Its place was needed.
    Capacity,
    /// Somebody asked for it.
    Asked,
    /// A longer block begins with the same tokens.
    Superseded,
    /// The request that computed it failed: what it holds cannot be trusted.
    Failed,
}

/// Something that happened in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CacheEvent {
    /// Tokens entered the cache.
    Stored {
        /// Of the first one.
        position: usize,
        /// How many.
        num_tokens: usize,
    },
    /// A request found its first tokens.
    Hit {
        /// How many.
        num_tokens: usize,
    },
    /// Blocks that had been saved came back.
    Restored {
        /// Of the first token.
        position: usize,
        /// Tokens that they hold.
        num_tokens: usize,
        /// Layer group.
        group: usize,
    },
    /// A block was not used for its time to live, and dropped.
    Expired {
        /// Of its first token.
        position: usize,
        /// Tokens that it held.
        num_tokens: usize,
        /// Layer group.
        group: usize,
    },
    /// A block was given up.
    Evicted {
        /// Of its first token.
        position: usize,
        /// Tokens that it held.
        num_tokens: usize,
        /// Layer group.
        group: usize,
        /// Why.
        reason: EvictReason,
    },
}

/// How a block or a node came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was not used for its time to live.
    Expired,
    /// Anything else.
    Evicted(EvictReason),
}

/// Why a request found no more than it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    /// Nothing like it was computed before.
    Cold,
    /// It was there, but its place was needed.
    Evicted,
    /// It was there, but for longer than its time to live.
    Expired,
    /// The tokens differ from what the cache has.
    Differs,
    /// It is there, under another salt.
    Salted,
    /// The tokens differ in what the chat template wrote, not in a message. Said by whoever knows the template.
    TemplateChanged,
    /// The request did not want the cache.
    Disabled,
}

/// Where and why reuse ended before the prompt did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Miss {
    /// Of the first token that is not reused.
    pub position: usize,
    /// Why.
    pub reason: MissReason,
    /// The token that the cache has there, if tokens differ.
    pub expected: Option<u32>,
    /// The token that the prompt has there.
    pub found: Option<u32>,
}

/// Counters since the cache was made, and its state now.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct CacheStats {
    /// Trie nodes: blocks and tails of distinct prefixes.
    pub num_nodes: usize,
    /// Blocks with cached contents, over all layer groups, whether held or not.
    pub num_blocks: usize,
    /// Of these, pinned ones.
    pub num_pinned: usize,
    /// Requests that looked for their prompt (again after a preemption).
    pub num_lookups: u64,
    /// Requests that found something.
    pub num_hits: u64,
    /// Tokens that were looked for.
    pub asked_tokens: u64,
    /// Tokens that were found.
    pub read_tokens: u64,
    /// Tokens that entered the cache.
    pub written_tokens: u64,
    /// Blocks that were computed although the cache had them, and were given back.
    pub num_duplicates: u64,
    /// Blocks given up because their place was needed.
    pub num_evicted: u64,
    /// Blocks that outlived their time.
    pub num_expired: u64,
    /// Blocks that were dropped on request, or because a longer one took their place.
    pub num_dropped: u64,
    /// Blocks that had been saved and came back.
    pub num_restored: u64,
    /// Events that nobody fetched in time.
    pub num_lost_events: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    pub(super) stats: CacheStats,
    events: VecDeque<CacheEvent>,
    /// Path hashes of nodes that are gone. A hash that collides can only make a reason wrong, never an answer.
    tombstones: HashMap<u64, End>,
    /// Those of `tombstones`, the oldest in front; one that was stored again may be in it still.
    graves: VecDeque<u64>,
}

impl Journal {
    pub(super) fn push(&mut self, event: CacheEvent) {
        match event {
            CacheEvent::Stored { num_tokens, .. } => self.stats.written_tokens += num_tokens as u64,
            CacheEvent::Restored { num_tokens, .. } => self.stats.num_restored += (num_tokens / BLOCK_SIZE) as u64,
            CacheEvent::Hit { num_tokens } => self.stats.read_tokens += num_tokens as u64,
            CacheEvent::Evicted { reason: EvictReason::Capacity, .. } => self.stats.num_evicted += 1,
            CacheEvent::Expired { .. } => self.stats.num_expired += 1,
            CacheEvent::Evicted { .. } => self.stats.num_dropped += 1,
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.stats.num_lost_events += 1;
        }
        self.events.push_back(event);
    }

    pub(super) fn take_events(&mut self) -> Vec<CacheEvent> {
        self.events.drain(..).collect()
    }

    /// Takes note that a block has come to its end.
    pub(super) fn push_end(&mut self, position: usize, num_tokens: usize, group: usize, end: End) {
        self.push(match end {
            End::Expired => CacheEvent::Expired { position, num_tokens, group },
            End::Evicted(reason) => CacheEvent::Evicted { position, num_tokens, group, reason },
        });
    }

    /// Remembers why a node is gone.
    pub(super) fn bury(&mut self, path_hash: u64, end: End) {
        if self.tombstones.insert(path_hash, end).is_none() {
            self.graves.push_back(path_hash);
        }
        while self.graves.len() > MAX_TOMBSTONES {
            if let Some(oldest) = self.graves.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }

    /// Why the node of this path is gone, if it ever was there and that is not too long ago.
    pub(super) fn cause_of_death(&self, path_hash: u64) -> Option<MissReason> {
        match self.tombstones.get(&path_hash)? {
            End::Expired => Some(MissReason::Expired),
            End::Evicted(_) => Some(MissReason::Evicted),
        }
    }
}
