//! Configuration, weights and the forward pass.
//!
//! The forward pass is recorded once, at load, from a file's header; the plan of what it needs is the recording's own
//! account. Loading streams the weights into the executor's buffers; a step only fills small buffers and replays.

mod autotune;
mod batch;
mod blocks;
mod config;
mod extras;
mod forward;
mod inputs;
mod loaded;
mod memory;
mod plan;
mod probe;
mod residual;
mod rope;
mod weights;
mod xxh64;

pub use autotune::{Choice, Precision, TUNING_BUDGET_MS, Timing, Tuned, TuningSource, autotune, tuning_key};
pub use batch::{
    Batch, BatchLimits, Forward, LogitEdit, Logits, MAX_GROUPS, RowCopy, RowMask, RowSampling, RowTop, Token,
    TokenPool, TokenRow,
};
pub use blocks::{KvBlocks, KvIdentity, KvLayer};
pub use config::{ModelConfig, Rope, SUPPORTED, Sliding};
pub use extras::{RowScores, StepExtras};
pub use forward::{Graph, Io, Layout};
pub use loaded::{CpuModel, GpuModel, LoadProgress, Model, load_cpu, load_gpu};
pub use memory::{KV_FORMATS, KvMemory, KvShape};
pub use plan::{
    DEFAULT_CONTEXT_LENGTH, DEFAULT_MAX_SEQUENCES, DeviceInfo, MIN_CONTEXT_LENGTH, ModelOptions, Plan, plan,
};
pub use probe::probe;
pub use weights::{Part, Placement};
pub use xxh64::Xxh64;

pub use crate::kernels::MAX_TOP_LOGITS;
