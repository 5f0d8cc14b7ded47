//! Counts what happens, for [`EngineMetrics`].

use super::histogram::Histogram;
use super::metrics::{EngineMetrics, FinishedCounts, Timings, TokenTime};
use super::output::FinishReason;
use crate::Error;
use crate::kv::{CacheStats, GroupStats};

/// A step that was computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepRecord {
    pub(super) wall_ms: f64,
    /// `None` where the GPU keeps no time.
    pub(super) gpu_ms: Option<f64>,
    /// `None` where there is none to hand a step to.
    pub(super) encode_ms: Option<f64>,
    pub(super) num_tokens: usize,
    pub(super) num_sequences: usize,
}

/// What is true at the moment of asking, for [`Recorder::snapshot`].
pub(super) struct Present {
    pub(super) num_waiting: usize,
    pub(super) num_running: usize,
    pub(super) num_preemptions: u64,
    pub(super) kv: Vec<GroupStats>,
    pub(super) cache: CacheStats,
}

/// Counts what happens.
pub(super) struct Recorder {
    /// The counters; the present is filled in when asked.
    metrics: EngineMetrics,
}

impl Recorder {
    pub(super) fn new() -> Self {
        let (step_tokens, step_sequences) = (Histogram::counts(), Histogram::counts());
        Self { metrics: EngineMetrics { step_tokens, step_sequences, ..EngineMetrics::default() } }
    }

    /// A request's first step begins: once for each prompt, however many answers it gets.
    pub(super) fn started(&mut self, queue_ms: f64, prompt_tokens: usize, cached_tokens: usize) {
        self.metrics.queue_ms.record(queue_ms);
        self.metrics.prompt_tokens += prompt_tokens as u64;
        self.metrics.cached_tokens += cached_tokens as u64;
    }

    /// A token was sampled.
    pub(super) fn token(&mut self, time: TokenTime) {
        self.metrics.generated_tokens += 1;
        match time {
            TokenTime::First { ttft_ms } => self.metrics.ttft_ms.record(ttft_ms),
            TokenTime::Next { gap_ms } => self.metrics.inter_token_ms.record(gap_ms),
        }
    }

    /// An answer is complete, `e2e_ms` after its arrival.
    pub(super) fn finished(&mut self, reason: FinishReason, timings: &Timings, e2e_ms: f64) {
        let FinishedCounts { stop, length } = &mut self.metrics.num_finished;
        *match reason {
            FinishReason::Stop => stop,
            FinishReason::Length => length,
        } += 1;
        if let Some(tpot_ms) = timings.tpot_ms {
            self.metrics.tpot_ms.record(tpot_ms);
        }
        self.metrics.e2e_ms.record(e2e_ms);
    }

    /// A request failed.
    pub(super) fn failed(&mut self, error: &Error) {
        match error {
            Error::DeadlineExceeded { .. } => self.metrics.num_expired += 1,
            _ => self.metrics.num_failed += 1,
        }
    }

    /// A request was ended by its owner.
    pub(super) fn cancelled(&mut self) {
        self.metrics.num_cancelled += 1;
    }

    /// A request found the queue full.
    pub(super) fn rejected(&mut self) {
        self.metrics.num_rejected += 1;
    }

    /// A step failed.
    pub(super) fn step_failed(&mut self, error: &Error) {
        self.metrics.num_out_of_memory += u64::from(matches!(error, Error::OutOfMemory { .. }));
    }

    /// A step was submitted, behind others that are in flight or not.
    pub(super) fn submitted(&mut self, is_ahead: bool) {
        self.metrics.num_steps_ahead += u64::from(is_ahead);
    }

    /// Tokens were drawn that belong to nobody any more.
    pub(super) fn overshot(&mut self, num_tokens: usize) {
        self.metrics.overshot_tokens += num_tokens as u64;
    }

    /// A step was computed.
    pub(super) fn step(&mut self, step: StepRecord) {
        let StepRecord { wall_ms, gpu_ms, encode_ms, num_tokens, num_sequences } = step;
        self.metrics.num_steps += 1;
        self.metrics.computed_tokens += num_tokens as u64;
        self.metrics.step_ms.record(wall_ms);
        self.metrics.step_tokens.record(num_tokens as f64);
        self.metrics.step_sequences.record(num_sequences as f64);
        if let Some(gpu_ms) = gpu_ms {
            self.metrics.gpu_step_ms.record(gpu_ms);
        }
        if let Some(encode_ms) = encode_ms {
            self.metrics.encode_ms.record(encode_ms);
        }
    }

    /// The counters and the present state.
    pub(super) fn snapshot(&self, present: Present) -> EngineMetrics {
        let Present { num_waiting, num_running, num_preemptions, kv, cache } = present;
        let usage = |pool: &GroupStats| pool.used as f64 / pool.num_blocks.max(1) as f64;
        EngineMetrics {
            num_waiting,
            num_running,
            num_preemptions,
            kv_usage: kv.iter().map(usage).fold(0.0, f64::max),
            kv,
            prefix_queries: cache.asked_tokens,
            prefix_hits: cache.read_tokens,
            ..self.metrics.clone()
        }
    }
}
