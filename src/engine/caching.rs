//! What a request says about the prefix cache, what it gets back, and how callers see and steer the cache.

use std::rc::Rc;

use super::engine::whole_ms;
use super::groups::CacheGroup;
use super::sampling::bad_value;
use super::{Engine, Request, RequestId};
use crate::Result;
use crate::kv::{
    BLOCK_SIZE, BlockId, BlockView, CacheEvent, CacheStats, Hit, Miss, MissReason, Policy, PrefixView, Retention,
};
use crate::model::Forward;

/// The most breakpoints of one request.
pub const MAX_BREAKPOINTS: usize = 64;

/// The longest salt or name, in bytes of UTF-8.
pub const MAX_CACHE_NAME_BYTES: usize = 256;

/// A position of the prompt up to which blocks are kept for a time of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breakpoint {
    /// Tokens before it.
    pub position: usize,
    /// Blocks are dropped when they were not used for so long.
    pub ttl_ms: u64,
}

/// How a request uses the prefix cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    /// Reuse what is there, and leave there what is computed.
    pub enabled: bool,
    /// Blocks of lower priority are given up first.
    pub priority: i32,
    /// Drop blocks that were not used for so long; `None` keeps them until their place is needed.
    pub ttl_ms: Option<u64>,
    /// Positions up to which other times apply.
    pub breakpoints: Vec<Breakpoint>,
    /// Pin the prompt up to the last breakpoint, or all of it: it is given up last.
    pub pin: bool,
    /// Prefixes under different salts never meet.
    pub salt: String,
    /// What the prompt up to the last breakpoint is called in listings.
    pub name: Option<String>,
    /// The key of the requests that are counted together; see [`Engine::cache_groups`].
    pub group: Option<String>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            priority: 0,
            ttl_ms: None,
            breakpoints: Vec::new(),
            pin: false,
            salt: String::new(),
            name: None,
            group: None,
        }
    }
}

impl CacheOptions {
    /// Checks the sizes.
    pub(super) fn validate(&self) -> Result<()> {
        let allowed = format_args!("at most {MAX_BREAKPOINTS}").to_string();
        if self.breakpoints.len() > MAX_BREAKPOINTS {
            return Err(bad_value("cache breakpoints", self.breakpoints.len(), allowed));
        }
        let [name, group] = [&self.name, &self.group].map(|text| text.as_deref().unwrap_or_default());
        for (what, text) in [("cache salt", self.salt.as_str()), ("cache name", name), ("cache group", group)] {
            if text.len() > MAX_CACHE_NAME_BYTES {
                let asked = format_args!("{} bytes", text.len()).to_string();
                return Err(bad_value(what, asked, format_args!("at most {MAX_CACHE_NAME_BYTES}")));
            }
        }
        Ok(())
    }

    /// The same for the cache, of a prompt of `num_prompt` tokens.
    pub(super) fn retention(&self, num_prompt: usize) -> Rc<Retention> {
        let last = self.breakpoints.iter().map(|breakpoint| breakpoint.position).max();
        let end = last.unwrap_or(num_prompt).min(num_prompt);
        Rc::new(Retention {
            priority: self.priority,
            ttl_ms: self.ttl_ms,
            breakpoints: self.breakpoints.iter().map(|point| (point.position, point.ttl_ms)).collect(),
            pin_tokens: if self.pin { end } else { 0 },
            // Only full blocks are shared, so the last full one stands for the prefix.
            name: self.name.clone().map(|name| (end / BLOCK_SIZE * BLOCK_SIZE, name)),
        })
    }
}

/// What the prefix cache did for a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct CacheReport {
    /// Tokens of the prompt that were not computed.
    pub read_tokens: usize,
    /// Tokens that are in the cache because of this request.
    pub written_tokens: usize,
    /// Why it was not more; `None` if nothing more could be expected.
    pub miss: Option<Miss>,
}

impl CacheReport {
    /// What a sequence of `tokens` found when it was looked for; without a hit, the cache was not wanted.
    pub(super) fn of(hit: Option<&Hit>, tokens: &[u32]) -> Self {
        let disabled =
            Miss { position: 0, reason: MissReason::Disabled, expected: None, found: tokens.first().copied() };
        Self {
            read_tokens: hit.map_or(0, Hit::num_tokens),
            written_tokens: 0,
            miss: hit.map_or(Some(disabled), |hit| hit.miss),
        }
    }
}

/// Seeing and steering the prefix cache.
impl<F: Forward> Engine<F> {
    /// Counters and present state.
    pub fn cache_stats(&self) -> CacheStats {
        self.kv.cache_stats()
    }

    /// The requests that have a [`CacheOptions::group`], summed by it: the group that was used last in front, at most
    /// [`super::MAX_CACHE_GROUPS`] of them; and how many were forgotten because there were more.
    pub fn cache_groups(&self) -> (Vec<CacheGroup>, u64) {
        (self.groups.list(), self.groups.num_forgotten())
    }

    /// What the cache would do for a request if it came now and nothing else did. Nothing is computed, and nothing
    /// changes: what would expire now is looked for in a copy.
    ///
    /// # Errors
    /// As [`Engine::submit`], but for a queue that is full.
    pub fn cache_explain(&self, request: &Request, now_ms: f64) -> Result<CacheReport> {
        self.check_request(request, 1)?;
        let Request { prompt, cache, .. } = request;
        let hit = cache.enabled.then(|| self.kv.find_at(whole_ms(now_ms), &cache.salt, prompt));
        let fitting = hit.map(|hit| {
            let num_tokens = prompt.len();
            self.scheduler.fit_tokens(num_tokens, hit.clone(), &self.kv, &self.limits).unwrap_or(hit)
        });
        Ok(CacheReport::of(fitting.as_ref(), prompt))
    }

    /// Every block of every pool, for drawing.
    pub fn cache_blocks(&self) -> Vec<BlockView> {
        self.kv.blocks()
    }

    /// Who holds which block of which layer group, choices apart from each other.
    pub fn cache_holders(&self) -> Vec<(RequestId, usize, BlockId)> {
        let mut holders = Vec::new();
        for running in self.scheduler.running() {
            for group in 0..self.kv.num_groups() {
                let blocks = self.kv.table(running.table, group).held();
                holders.extend(blocks.iter().map(|&block| (running.sequence.id, group, block)));
            }
        }
        holders
    }

    /// The cached prefixes that have a name or that nothing follows.
    pub fn cache_prefixes(&self) -> Vec<PrefixView> {
        self.kv.prefixes()
    }

    /// Pins what the cache has of a prefix, in full blocks; returns their tokens. Pinned blocks are given up last, and
    /// only if nothing could run otherwise.
    pub fn cache_pin(&mut self, salt: &str, prefix: &[u32]) -> usize {
        self.kv.pin(salt, prefix)
    }

    /// Unpins a prefix, but for what a longer pinned one needs; returns the tokens that are not pinned any more.
    pub fn cache_unpin(&mut self, salt: &str, prefix: &[u32]) -> usize {
        self.kv.unpin(salt, prefix)
    }

    /// Drops everything that begins with `prefix` and is not in use; returns the number of blocks.
    pub fn cache_evict(&mut self, salt: &str, prefix: &[u32]) -> usize {
        self.kv.evict(salt, prefix)
    }

    /// Drops everything that is not in use; returns the number of blocks.
    pub fn cache_clear(&mut self) -> usize {
        self.kv.clear()
    }

    /// What happened in the cache since the last call.
    pub fn cache_events(&mut self) -> Vec<CacheEvent> {
        self.kv.take_events()
    }

    /// Chooses how free blocks of equal priority are given up.
    pub fn set_cache_policy(&mut self, policy: Policy) {
        self.kv.set_policy(policy);
    }
}
