//! Serving requests: sequences, the scheduler, sampling parameters, stop rules, metrics and the step loop.
//!
//! A *step* runs one batch through the model: [`Engine::step`] plans it, has it computed and turns the sampled ids into
//! events; the next ones may be on the device's queue by then. There is no prefill phase and no decode phase: a sequence
//! has tokens and knows how many of them are computed, and each step lets the second number catch up with the first.
//! Absent: threads, clocks and random sources. Time is a number that the caller passes in, randomness a seed, and nothing
//! happens between steps but what the device still computes.

mod admission;
mod ahead;
mod batch;
mod caching;
mod check;
mod deadline;
#[expect(clippy::module_inception, reason = "the engine is the noun of this module")]
mod engine;
mod evaluate;
mod events;
mod flight;
mod groups;
mod guide;
mod histogram;
mod metrics;
mod options;
mod output;
mod pace;
mod persist;
mod prometheus;
mod queue;
mod recorder;
mod request;
mod running;
mod sampling;
mod scheduler;
mod sequence;
mod snapshot;
mod step;
mod trace;

pub use caching::{Breakpoint, CacheOptions, CacheReport, MAX_BREAKPOINTS, MAX_CACHE_NAME_BYTES};
pub use deadline::Timeouts;
pub use engine::Engine;
pub use evaluate::{Evaluation, evaluate};
pub use events::{Event, Progress, TokenLogprob, TokenLogprobs};
pub use groups::{CacheGroup, MAX_CACHE_GROUPS};
pub use histogram::{Histogram, HistogramSummary};
pub use metrics::{EngineMetrics, FinishedCounts, Timings, Usage};
pub use options::EngineOptions;
pub use output::FinishReason;
pub use persist::{RestoredPrefix, SavedPrefix};
pub use prometheus::prometheus;
pub use request::{MAX_CHOICES, MAX_PRIORITY, MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, Priority, Request, RequestId};
pub use sampling::{MAX_LOGIT_BIAS, SamplingParams};
pub use scheduler::Batching;
pub use snapshot::{MAX_SAVED_TOKENS, SNAPSHOT_VERSION, SnapshotSource};
pub use trace::{MAX_TRACED_STEPS, StepPart, StepTrace};
