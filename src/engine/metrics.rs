//! What a request cost, and how the engine is doing.

use super::histogram::Histogram;
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

/// Answers that are complete, by why they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FinishedCounts {
    /// The model ended them, or a stop string or stop token did.
    pub stop: u64,
    /// `max_tokens` were generated, or the context was full.
    pub length: u64,
}

/// The engine's counters since it was made, and its state now. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct EngineMetrics {
    /// Requests that wait for their first step, or to be resumed.
    pub num_waiting: usize,
    /// Requests that hold blocks.
    pub num_running: usize,
    /// The block pools, one per layer group.
    pub kv: Vec<GroupStats>,
    /// Share of the blocks that sequences hold, 0 to 1, of the fullest pool.
    pub kv_usage: f64,
    /// Steps that were computed.
    pub num_steps: u64,
    /// Steps that were submitted before the one before was read back.
    pub num_steps_ahead: u64,
    /// Tokens of prompts, each counted once however many answers it gets.
    pub prompt_tokens: u64,
    /// Tokens of prompts that the prefix cache had.
    pub cached_tokens: u64,
    /// Tokens that were sampled.
    pub generated_tokens: u64,
    /// Tokens that were sampled for answers that had ended, or were given up, while their step was in flight; they are not
    /// among the generated ones.
    pub overshot_tokens: u64,
    /// Tokens that went through the model, those computed again included.
    pub computed_tokens: u64,
    /// Tokens that were looked for in the prefix cache.
    pub prefix_queries: u64,
    /// Tokens that were found there.
    pub prefix_hits: u64,
    /// Times that a running sequence had to give its blocks to another.
    pub num_preemptions: u64,
    /// Answers that are complete.
    pub num_finished: FinishedCounts,
    /// Requests that their owner ended.
    pub num_cancelled: u64,
    /// Requests that were refused because the queue was full.
    pub num_rejected: u64,
    /// Requests that ran out of their time.
    pub num_expired: u64,
    /// Requests that failed otherwise.
    pub num_failed: u64,
    /// Steps that failed for want of memory.
    pub num_out_of_memory: u64,
    /// From arrival to the first token.
    pub ttft_ms: Histogram,
    /// Mean time between the later tokens of an answer: one value an answer.
    pub tpot_ms: Histogram,
    /// Time between two tokens of an answer: one value a token.
    pub inter_token_ms: Histogram,
    /// From arrival to the start of the first step.
    pub queue_ms: Histogram,
    /// From arrival to the end, of complete answers.
    pub e2e_ms: Histogram,
    /// Steps, from planning to events.
    pub step_ms: Histogram,
    /// The GPU's part of them, where it can be told.
    pub gpu_step_ms: Histogram,
    /// The CPU's part of handing them to the GPU: writing their inputs, encoding and submitting.
    pub encode_ms: Histogram,
    /// Tokens of a step.
    pub step_tokens: Histogram,
    /// Sequences of a step.
    pub step_sequences: Histogram,
}

impl EngineMetrics {
    /// Share of the tokens looked for that the prefix cache had; `None` before the first look.
    pub fn prefix_hit_rate(&self) -> Option<f64> {
        (self.prefix_queries > 0).then(|| self.prefix_hits as f64 / self.prefix_queries as f64)
    }
}

/// A token of an answer, in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenTime {
    /// The first, so long after the request's arrival.
    First { ttft_ms: f64 },
    /// Another, so long after the one before.
    Next { gap_ms: f64 },
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

    /// A step with this request begins; returns how long it waited, if it is the first.
    pub(super) fn start(&mut self, now_ms: f64) -> Option<f64> {
        let is_first = self.started_ms.is_none();
        self.started_ms.get_or_insert(now_ms);
        is_first.then_some(now_ms - self.submitted_ms)
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
    pub(super) fn token(&mut self, now_ms: f64) -> TokenTime {
        let time = match self.first_token_ms {
            None => TokenTime::First { ttft_ms: now_ms - self.submitted_ms },
            Some(_) => TokenTime::Next { gap_ms: now_ms - self.last_token_ms },
        };
        self.first_token_ms.get_or_insert(now_ms);
        self.last_token_ms = now_ms;
        self.num_tokens += 1;
        time
    }

    /// From arrival until now.
    pub(super) fn elapsed_ms(&self, now_ms: f64) -> f64 {
        now_ms - self.submitted_ms
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
