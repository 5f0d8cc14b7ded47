//! A simulation as one plain description, so that a page or a file can hold it.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde::{Deserialize, Serialize};

use super::cost::CostModel;
use super::forward::{SimForward, VirtualClock, tokenizer};
use super::run::{Outcome, run};
use super::workload::{Workload, in_range};
use crate::engine::{Batching, Engine, EngineOptions};
use crate::kv::{BLOCK_SIZE, GroupConfig};
use crate::model::BatchLimits;
use crate::{Error, Result};

/// The most sequences that run at once.
const MAX_SLOTS: usize = 1024;
/// The most tokens in a pool or a context.
const MAX_TOKENS: usize = 1 << 24;

/// A workload, a machine, and how the engine is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Simulation {
    /// What is asked.
    pub workload: Workload,
    /// What a step takes.
    pub cost: CostModel,
    /// Tokens that the KV pool has room for.
    pub kv_tokens: usize,
    /// Tokens that a prompt and its answer may have.
    pub context_length: usize,
    /// Sequences that run at once, at most.
    pub max_running: usize,
    /// Tokens of a step, at most.
    pub budget_tokens: usize,
    /// When waiting requests join those that run: `continuous`, `static` or `none`.
    #[serde(with = "BatchingName")]
    pub batching: Batching,
    /// Whether steps mix parts of prompts with answers.
    pub chunked_prefill: bool,
    /// Milliseconds that a step should take.
    pub step_target_ms: Option<f64>,
    /// Whether prompts that begin alike share what is computed.
    pub prefix_cache: bool,
}

/// How [`Batching`] is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Batching", rename_all = "lowercase")]
enum BatchingName {
    Continuous,
    Static,
    None,
}

impl Default for Simulation {
    /// [`Workload::default`] on [`CostModel::SERVER`], which has 55 GB left for keys and values.
    fn default() -> Self {
        Self {
            workload: Workload::default(),
            cost: CostModel::SERVER,
            kv_tokens: 420_000,
            context_length: 16_384,
            max_running: 256,
            budget_tokens: 2048,
            batching: Batching::Continuous,
            chunked_prefill: true,
            step_target_ms: None,
            prefix_cache: true,
        }
    }
}

impl Simulation {
    fn validate(&self) -> Result<()> {
        self.cost.validate()?;
        in_range("max_running", self.max_running as f64, 1.0, MAX_SLOTS as f64)?;
        in_range("budget_tokens", self.budget_tokens as f64, 1.0, MAX_TOKENS as f64)?;
        in_range("context_length", self.context_length as f64, BLOCK_SIZE as f64, MAX_TOKENS as f64)?;
        in_range("kv_tokens", self.kv_tokens as f64, self.context_length as f64, MAX_TOKENS as f64)?;
        self.step_target_ms.map_or(Ok(()), |ms| in_range("step_target_ms", ms, 1e-3, 1e9))
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits {
            max_tokens: self.budget_tokens,
            max_sequences: self.max_running,
            max_rows: self.max_running,
            max_edits: 0,
            max_copies: self.max_running * BLOCK_SIZE,
            context_length: self.context_length,
            max_blocks: self.context_length.div_ceil(BLOCK_SIZE),
        }
    }

    /// How the engine is set.
    pub fn options(&self) -> EngineOptions {
        EngineOptions {
            max_running: self.max_running,
            max_waiting: usize::MAX,
            budget_tokens: self.budget_tokens,
            batching: self.batching,
            chunked_prefill: self.chunked_prefill,
            step_target_ms: self.step_target_ms,
            ..EngineOptions::default()
        }
    }
}

/// Runs a simulation.
///
/// # Errors
/// `bad_request` for a number out of range, `context_too_long` when a request can never fit.
pub fn simulate(simulation: &Simulation) -> Result<Outcome> {
    simulation.validate()?;
    let mut arrivals = simulation.workload.generate(SimForward::IDS)?;
    arrivals.iter_mut().for_each(|arrival| arrival.request.cache.enabled = simulation.prefix_cache);
    let clock = VirtualClock::default();
    let forward = SimForward::new(simulation.cost, simulation.limits(), clock.clone());
    let groups = vec![GroupConfig { num_blocks: simulation.kv_tokens / BLOCK_SIZE, window: None }];
    let mut engine = Engine::new(forward, tokenizer()?, groups, simulation.options());
    let running = pin!(run(&mut engine, &arrivals, &clock, simulation.max_running));
    // Nothing in it waits for anything: time is a number.
    match running.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(Error::WrongResult("a simulated step did not end".into())),
    }
}
