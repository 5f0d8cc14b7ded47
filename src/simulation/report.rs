//! The figures that describe how a workload was served.

use serde::Serialize;

use super::run::{Outcome, RequestOutcome};

/// A distribution: the values that a half, 95 and 99 per cent of all do not exceed, and the largest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// 95 per cent.
    pub p95: f64,
    /// 99 per cent.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

impl Percentiles {
    /// Of these values; zeros if there are none. A percentile is always one of the values: the nearest rank.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let Some(&max) = values.last() else { return Self::default() };
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self { p50: rank(50), p95: rank(95), p99: rank(99), max, mean }
    }
}

/// How a workload was served. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Requests that these figures are of; all were completed.
    pub num_requests: usize,
    /// From the start to the last token of the whole workload.
    pub makespan_ms: f64,
    /// Tokens of the prompts.
    pub prompt_tokens: usize,
    /// Of these, what the prefix cache had.
    pub cached_tokens: usize,
    /// Tokens of the answers.
    pub generated_tokens: usize,
    /// Tokens of the answers per second of the makespan.
    pub generated_tokens_per_s: f64,
    /// Tokens of prompts and answers per second of the makespan.
    pub total_tokens_per_s: f64,
    /// Steps that were computed.
    pub num_steps: usize,
    /// Share of the slots that computed, mean over the time that steps took.
    pub occupancy: f64,
    /// Times that a running sequence had to give up its blocks.
    pub num_preemptions: u64,
    /// From arrival to the start of the first step.
    pub queue_ms: Percentiles,
    /// From arrival to the first token.
    pub ttft_ms: Percentiles,
    /// From each token to the next.
    pub inter_token_ms: Percentiles,
    /// From arrival to the last token.
    pub end_to_end_ms: Percentiles,
}

impl Report {
    pub(super) fn new(outcome: &Outcome, is_meant: impl Fn(&RequestOutcome) -> bool) -> Self {
        let requests: Vec<_> = outcome.requests.iter().filter(|request| is_meant(request)).collect();
        let all = |value: fn(&RequestOutcome) -> f64| Percentiles::of(requests.iter().map(|r| value(r)).collect());
        let sum = |value: fn(&RequestOutcome) -> usize| requests.iter().map(|request| value(request)).sum::<usize>();
        let (prompt_tokens, generated_tokens) = (sum(|request| request.num_prompt), sum(|request| request.ids.len()));
        let per_s = |num: usize| if outcome.makespan_ms > 0.0 { num as f64 * 1e3 / outcome.makespan_ms } else { 0.0 };
        Self {
            num_requests: requests.len(),
            makespan_ms: outcome.makespan_ms,
            prompt_tokens,
            cached_tokens: sum(|request| request.num_cached),
            generated_tokens,
            generated_tokens_per_s: per_s(generated_tokens),
            total_tokens_per_s: per_s(prompt_tokens + generated_tokens),
            num_steps: outcome.steps.len(),
            occupancy: occupancy(outcome),
            num_preemptions: outcome.num_preemptions,
            queue_ms: all(|request| request.queue_ms),
            ttft_ms: all(RequestOutcome::ttft_ms),
            inter_token_ms: Percentiles::of(requests.iter().flat_map(|request| request.gaps_ms()).collect()),
            end_to_end_ms: all(RequestOutcome::end_to_end_ms),
        }
    }
}

fn occupancy(outcome: &Outcome) -> f64 {
    let busy_ms: f64 = outcome.steps.iter().map(|step| step.end_ms - step.start_ms).sum();
    let computed = |step: &crate::engine::StepTrace| (step.end_ms - step.start_ms) * step.parts.len() as f64;
    let slots_ms = busy_ms * outcome.num_slots as f64;
    if slots_ms > 0.0 { outcome.steps.iter().map(computed).sum::<f64>() / slots_ms } else { 0.0 }
}
