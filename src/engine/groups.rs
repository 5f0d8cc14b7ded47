//! What the prefix cache did for groups of requests: those with the same key.

use std::collections::VecDeque;

use super::sequence::Sequence;

/// Groups that are counted, at most: the one whose last request is longest ago is forgotten first.
pub const MAX_CACHE_GROUPS: usize = 256;

/// Sums over the requests of one key. A request counts when its prompt starts to be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheGroup {
    /// The requests' key.
    pub key: String,
    /// Requests, those that did not want the cache included.
    pub num_requests: u64,
    /// Requests of which something was cached.
    pub num_hits: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Of these, tokens that were cached.
    pub cached_tokens: u64,
}

impl CacheGroup {
    /// The share of the prompts' tokens that was cached, 0 to 1.
    pub fn hit_rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a share is shown with a few digits")]
        let rate = self.cached_tokens as f64 / self.prompt_tokens.max(1) as f64;
        rate
    }
}

/// All groups, the one that was used last in front.
#[derive(Debug, Default)]
pub(super) struct CacheGroups {
    groups: VecDeque<CacheGroup>,
    /// Groups that were forgotten.
    num_forgotten: u64,
}

impl CacheGroups {
    /// Takes note that a sequence is being computed; it counts once.
    pub(super) fn note(&mut self, sequence: &mut Sequence) {
        let Some(key) = sequence.group.take() else { return };
        let usage = sequence.usage();
        let known = self.groups.iter().position(|group| group.key == key);
        let blank = CacheGroup { key, num_requests: 0, num_hits: 0, prompt_tokens: 0, cached_tokens: 0 };
        let mut group = known.and_then(|index| self.groups.remove(index)).unwrap_or(blank);
        group.num_requests += 1;
        group.num_hits += u64::from(usage.cached_tokens > 0);
        group.prompt_tokens += usage.prompt_tokens as u64;
        group.cached_tokens += usage.cached_tokens as u64;
        self.groups.push_front(group);
        if self.groups.len() > MAX_CACHE_GROUPS {
            self.groups.pop_back();
            self.num_forgotten += 1;
        }
    }

    /// The groups, the one that was used last in front.
    pub(super) fn list(&self) -> Vec<CacheGroup> {
        self.groups.iter().cloned().collect()
    }

    /// Groups that were forgotten because there were too many.
    pub(super) fn num_forgotten(&self) -> u64 {
        self.num_forgotten
    }
}
