//! What a request cost, and how the engine is doing.

use crate::kv::GroupStats;

/// Tokens of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    /// The whole prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that the prefix cache had.
    pub cached_tokens: usize,
    /// Every sampled token, the one that ended the answer included.
    pub completion_tokens: usize,
    /// The sum of both.
    pub total_tokens: usize,
}

/// Times and speeds of a request; `None` where too few tokens were generated to tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Timings {
    /// From arrival to the start of its first step.
    pub queue_ms: f64,
    /// From arrival to the first token.
    pub ttft_ms: f64,
    /// Mean time between later tokens.
    pub tpot_ms: Option<f64>,
    /// Prompt tokens per second, queue time excluded.
    pub prefill_tokens_per_s: Option<f64>,
    /// Tokens per second after the first.
    pub decode_tokens_per_s: Option<f64>,
}

/// The engine's counters since it was made, and its state now.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct EngineMetrics {
    /// Requests that wait for their first step, or to be resumed.
    pub num_waiting: usize,
    /// Requests that hold blocks.
    pub num_running: usize,
    /// Steps that were computed.
    pub num_steps: u64,
    /// Tokens that went through the model, those computed again included.
    pub computed_tokens: u64,
    /// Tokens that were sampled.
    pub generated_tokens: u64,
    /// Times that a running sequence had to give its blocks to an older one.
    pub num_preemptions: u64,
    /// The block pools, one per layer group.
    pub kv: Vec<GroupStats>,
}

/// The moments of a request that its timings are made of, in milliseconds of the caller's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    submitted_ms: f64,
    started_ms: Option<f64>,
    first_token_ms: Option<f64>,
    last_token_ms: f64,
    num_tokens: u32,
}

impl Clock {
    pub(super) fn new(now_ms: f64) -> Self {
        Self { submitted_ms: now_ms, started_ms: None, first_token_ms: None, last_token_ms: now_ms, num_tokens: 0 }
    }

    /// A step with this request begins.
    pub(super) fn start(&mut self, now_ms: f64) {
        self.started_ms.get_or_insert(now_ms);
    }

    /// Whether a step with this request began.
    pub(super) fn has_started(&self) -> bool {
        self.started_ms.is_some()
    }

    /// Starts when the request began whose prompt this one shares.
    pub(super) fn follow(&mut self, first: &Self) {
        self.started_ms = first.started_ms;
    }

    /// Milliseconds from the first step on.
    pub(super) fn service_ms(&self, now_ms: f64) -> Option<f64> {
        Some(now_ms - self.started_ms?)
    }

    /// A token was sampled.
    pub(super) fn token(&mut self, now_ms: f64) {
        self.first_token_ms.get_or_insert(now_ms);
        self.last_token_ms = now_ms;
        self.num_tokens += 1;
    }

    pub(super) fn timings(&self, num_prompt: usize) -> Timings {
        let started_ms = self.started_ms.unwrap_or(self.submitted_ms);
        let first_ms = self.first_token_ms.unwrap_or(started_ms);
        let num_later = f64::from(self.num_tokens.saturating_sub(1));
        let later_ms = self.last_token_ms - first_ms;
        Timings {
            queue_ms: started_ms - self.submitted_ms,
            ttft_ms: first_ms - self.submitted_ms,
            tpot_ms: (num_later > 0.0).then(|| later_ms / num_later),
            prefill_tokens_per_s: per_second(num_prompt as f64, first_ms - started_ms),
            decode_tokens_per_s: per_second(num_later, later_ms),
        }
    }
}

fn per_second(count: f64, duration_ms: f64) -> Option<f64> {
    (count > 0.0 && duration_ms > 0.0).then(|| count / duration_ms * 1000.0)
}
