//! Recording what to compute, and replaying it on the CPU or on a GPU.
//!
//! Architecture invariant: this is the only module that uses `wgpu`. It knows nothing of models or formats.

mod candidates;
mod compiler;
mod cpu;
mod executor;
mod gpu;
mod gpu_executor;
mod readback;
mod recording;
mod shader;
mod stopwatch;
mod tuning;

pub use cpu::{Bindings, CpuExecutor};
pub use executor::Executor;
pub use gpu::{Gpu, GpuLimits, GpuOptions};
pub use gpu_executor::{ExecutorStats, GpuExecutor};
pub use recording::{
    Access, BufferId, BufferInfo, Dispatch, FEW_ROWS, Kernel, Purpose, Recording, RowClass, Rows, Step,
};
pub use shader::{Reduce, Shader};
pub use tuning::{AdapterKind, FewAttention, Lanes, ManyAttention, ManyRows, Tuning};
