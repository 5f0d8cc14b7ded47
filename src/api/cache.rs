//! What the page says about the prefix cache, and what it sees of it.

use serde::{Deserialize, Serialize};

use super::prompt::{Memory, Renderer};
use super::request::Input;
use super::trace::PageAnswer;
use crate::Result;
use crate::engine::{Breakpoint, CacheGroup, CacheOptions, RestoredPrefix};
use crate::kv::{BLOCK_SIZE, BlockView, CacheEvent, CacheStats, EvictReason, PrefixView, blocks_for};

/// `EngineCacheOptions` of `js/src/protocol.ts`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PageCache {
    enabled: bool,
    priority: i32,
    ttl_ms: Option<u64>,
    pin: bool,
    salt: String,
    name: Option<String>,
    group: Option<String>,
    breakpoints: Vec<PageBreakpoint>,
}

/// The end of a message, or of one of its parts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PageBreakpoint {
    /// Messages up to it, the one that it ends included.
    num_messages: usize,
    /// What the last of them has before it, if that is not all.
    content: Option<String>,
    ttl_ms: u64,
}

impl PageCache {
    /// The same for what comes back: there is no prompt that breakpoints could be found in.
    pub(super) fn without_breakpoints(self) -> CacheOptions {
        let Self { enabled, priority, ttl_ms, pin, salt, name, group, .. } = self;
        CacheOptions { enabled, priority, ttl_ms, breakpoints: Vec::new(), pin, salt, name, group }
    }

    /// The same for the engine. `prompt` is what `input` was made into; the positions of breakpoints are found in it.
    pub(super) fn into_options(
        self,
        input: &Input,
        prompt: &[u32],
        memory: &mut Memory<'_>,
        renderer: Renderer<'_>,
    ) -> Result<CacheOptions> {
        let mut breakpoints = Vec::new();
        if let Input::Messages(messages) = input {
            for point in &self.breakpoints {
                // A template need not render what only a part of the messages is: then there is nothing to end here.
                let Ok(text) = renderer.render_best(&point.messages_before(messages), false, memory) else { continue };
                let ids = memory.encode(&text)?;
                // Where the template does not continue what it wrote for fewer messages, what both have counts.
                let position = ids.iter().zip(prompt).take_while(|(a, b)| a == b).count();
                breakpoints.push(Breakpoint { position, ttl_ms: point.ttl_ms });
            }
        }
        Ok(CacheOptions { breakpoints, ..self.without_breakpoints() })
    }
}

impl PageBreakpoint {
    fn messages_before(&self, messages: &serde_json::Value) -> serde_json::Value {
        let all = messages.as_array().map_or(&[][..], Vec::as_slice);
        let mut before = all[..self.num_messages.min(all.len())].to_vec();
        if let (Some(content), Some(last)) = (&self.content, before.last_mut()) {
            last["content"] = content.as_str().into();
        }
        before.into()
    }
}

/// `RestoredPrefix` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
pub(super) struct PageRestored {
    tokens: usize,
    blocks: usize,
}

impl From<&RestoredPrefix> for PageRestored {
    fn from(restored: &RestoredPrefix) -> Self {
        Self { tokens: restored.num_tokens, blocks: restored.num_blocks }
    }
}

/// `CacheStats` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageStats {
    num_nodes: usize,
    num_blocks: usize,
    num_pinned: usize,
    num_lookups: u64,
    num_hits: u64,
    asked_tokens: u64,
    read_tokens: u64,
    written_tokens: u64,
    num_duplicates: u64,
    num_evicted: u64,
    num_expired: u64,
    num_dropped: u64,
    num_restored: u64,
    groups: Vec<PageGroup>,
    num_forgotten_groups: u64,
}

/// `CacheGroupStats` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageGroup {
    num_requests: u64,
    num_hits: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    hit_rate: f64,
    key: String,
}

impl From<CacheGroup> for PageGroup {
    fn from(group: CacheGroup) -> Self {
        Self {
            hit_rate: group.hit_rate(),
            num_requests: group.num_requests,
            num_hits: group.num_hits,
            prompt_tokens: group.prompt_tokens,
            cached_tokens: group.cached_tokens,
            key: group.key,
        }
    }
}

impl PageStats {
    /// `groups` are those of the requests, and how many of them were forgotten.
    pub(super) fn new(stats: CacheStats, (groups, num_forgotten_groups): (Vec<CacheGroup>, u64)) -> Self {
        Self {
            num_nodes: stats.num_nodes,
            num_blocks: stats.num_blocks,
            num_pinned: stats.num_pinned,
            num_lookups: stats.num_lookups,
            num_hits: stats.num_hits,
            asked_tokens: stats.asked_tokens,
            read_tokens: stats.read_tokens,
            written_tokens: stats.written_tokens,
            num_duplicates: stats.num_duplicates,
            num_evicted: stats.num_evicted,
            num_expired: stats.num_expired,
            num_dropped: stats.num_dropped,
            num_restored: stats.num_restored,
            groups: groups.into_iter().map(PageGroup::from).collect(),
            num_forgotten_groups,
        }
    }
}

/// `CacheBlock` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageBlock {
    group: usize,
    block: u32,
    num_holders: u32,
    holders: Vec<PageAnswer>,
    cached: Option<PageCached>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageCached {
    node: u64,
    parent: u64,
    position: usize,
    num_tokens: usize,
    priority: i32,
    is_pinned: bool,
    idle_ms: u64,
    expires_in_ms: Option<u64>,
    num_hits: u64,
}

impl PageBlock {
    /// `holders` are those that the page knows, `now_ms` is the time on the engine's clock.
    pub(super) fn new(view: BlockView, holders: Vec<PageAnswer>, now_ms: u64) -> Self {
        let cached = view.cached.map(|cached| PageCached {
            node: cached.node.into(),
            parent: cached.parent.into(),
            position: cached.position,
            num_tokens: cached.num_tokens,
            priority: cached.priority,
            is_pinned: cached.is_pinned,
            idle_ms: now_ms.saturating_sub(cached.used_ms),
            expires_in_ms: cached.expires_ms.map(|expires| expires.saturating_sub(now_ms)),
            num_hits: cached.num_hits,
        });
        Self { group: view.group, block: view.block, num_holders: view.num_holders, holders, cached }
    }
}

/// `CachePrefix` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PagePrefix {
    node: u64,
    name: Option<String>,
    salt: String,
    tokens: Vec<u32>,
    num_blocks: usize,
    bytes: u64,
    age_ms: u64,
    idle_ms: u64,
    expires_in_ms: Option<u64>,
    num_hits: u64,
    priority: i32,
    is_pinned: bool,
    is_held: bool,
}

impl PagePrefix {
    /// `block_bytes` are the bytes of a block of each layer group.
    pub(super) fn new(view: PrefixView, now_ms: u64, block_bytes: &[u64]) -> Self {
        // The first group has a block for every stretch of the prefix, the second only for what it can reach.
        let num_first = view.num_blocks.min(blocks_for(view.tokens.len()));
        let bytes = |group: usize, num: usize| block_bytes.get(group).copied().unwrap_or(0) * num as u64;
        Self {
            node: view.node.into(),
            bytes: bytes(0, num_first) + bytes(1, view.num_blocks - num_first),
            name: view.name,
            salt: view.salt,
            tokens: view.tokens,
            num_blocks: view.num_blocks,
            age_ms: now_ms.saturating_sub(view.created_ms),
            idle_ms: now_ms.saturating_sub(view.used_ms),
            expires_in_ms: view.expires_ms.map(|expires| expires.saturating_sub(now_ms)),
            num_hits: view.num_hits,
            priority: view.priority,
            is_pinned: view.is_pinned,
            is_held: view.is_held,
        }
    }
}

/// Bytes of a block of each layer group, of what all groups take and what a token takes in the first.
pub(super) fn block_bytes(num_blocks: &[usize], kv_bytes: u64, bytes_per_token: u64) -> Vec<u64> {
    let first = bytes_per_token * BLOCK_SIZE as u64;
    let rest = kv_bytes.saturating_sub(first * num_blocks.first().map_or(0, |&num| num as u64));
    let second = num_blocks.get(1).map(|&num| rest / (num as u64).max(1));
    [Some(first), second].into_iter().flatten().collect()
}

/// `CacheEvent` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(super) enum PageCacheEvent {
    Stored { position: usize, num_tokens: usize },
    Hit { num_tokens: usize },
    Restored { position: usize, num_tokens: usize, group: usize },
    Expired { position: usize, num_tokens: usize, group: usize },
    Evicted { position: usize, num_tokens: usize, group: usize, reason: EvictReason },
}

impl From<CacheEvent> for PageCacheEvent {
    fn from(event: CacheEvent) -> Self {
        match event {
            CacheEvent::Stored { position, num_tokens } => Self::Stored { position, num_tokens },
            CacheEvent::Hit { num_tokens } => Self::Hit { num_tokens },
            CacheEvent::Restored { position, num_tokens, group } => Self::Restored { position, num_tokens, group },
            CacheEvent::Expired { position, num_tokens, group } => Self::Expired { position, num_tokens, group },
            CacheEvent::Evicted { position, num_tokens, group, reason } => {
                Self::Evicted { position, num_tokens, group, reason }
            }
        }
    }
}
