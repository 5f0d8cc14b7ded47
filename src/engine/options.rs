//! What can be chosen when an engine is made.

use super::scheduler::Batching;
use crate::kv::Policy;

/// What can be chosen when an engine is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineOptions {
    /// Sequences that run at once, at most (and no more than the model's batches take).
    pub max_running: usize,
    /// Requests that wait, at most.
    pub max_waiting: usize,
    /// Tokens of a step, at most (and no more than the model's batches take).
    pub budget_tokens: usize,
    /// Requests without a seed get one derived from this.
    pub seed: u64,
    /// How the prefix cache chooses what to give up.
    pub cache_policy: Policy,
    /// When waiting requests join those that run.
    pub batching: Batching,
    /// Whether steps mix parts of prompts with answers; otherwise prompts are computed first and whole, as far as a batch
    /// takes them, and answers stand still meanwhile.
    pub chunked_prefill: bool,
    /// Milliseconds that a submission to the device should take; see [`super::Engine::set_step_target`].
    pub step_target_ms: Option<f64>,
    /// Steps that are in flight, at most: the next are submitted before the ids of one are read back. `None` adapts it to
    /// what the device would wait otherwise; 1 submits nothing ahead.
    pub max_steps_ahead: Option<usize>,
    /// Whether tokens that a constraint leaves no choice for are taken as they are, several in a step, instead of being drawn one
    /// by one: the answer is the same.
    pub jumps_ahead: bool,
    /// The head start of a level of priority, in milliseconds.
    pub priority_step_ms: f64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_running: usize::MAX,
            max_waiting: 256,
            budget_tokens: usize::MAX,
            seed: 0,
            cache_policy: Policy::Lru,
            batching: Batching::Continuous,
            chunked_prefill: true,
            step_target_ms: None,
            max_steps_ahead: None,
            jumps_ahead: true,
            priority_step_ms: 10_000.0,
        }
    }
}
