//! What to compute, apart from who computes it: buffers, and dispatches over them in order.
//!
//! A recording is built once, at load. Everything that changes from step to step is in [`Step`] and in the contents of
//! the buffers, so replaying it creates nothing.

use std::fmt;

use super::cpu::Bindings;
use super::shader::Shader;

/// A buffer of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub(super) usize);

/// The name and size of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferInfo {
    /// For error messages and debuggers.
    pub label: String,
    /// Size in 4-byte words.
    pub size_words: usize,
    /// What the memory is for, in the plan's terms.
    pub purpose: Purpose,
}

/// What a buffer's memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Weights, written once at load.
    Weights,
    /// Keys and values.
    Kv,
    /// Activations, tables, logits and other working memory.
    Scratch,
}

/// The sizes of one step: the only numbers a grid may depend on.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Step {
    /// T, tokens in the step.
    pub num_tokens: u32,
    /// R, rows whose logits are wanted.
    pub num_rows: u32,
    /// Logit edits.
    pub num_edits: u32,
    /// Cache rows to copy.
    pub num_copies: u32,
    /// Tokens of context that the step's longest sequence has, those of the step included.
    pub longest: u32,
    /// Rows whose log-probabilities are wanted.
    pub num_tops: u32,
    /// P, pools of tokens.
    pub num_pools: u32,
    /// Nothing: shaders see the sizes as a uniform, which is a multiple of 16 bytes.
    pub reserved: u32,
}

/// Which rows a dispatch runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows {
    /// All tokens of the step.
    Tokens,
    /// Only those whose logits are wanted.
    Sampled,
}

impl Rows {
    /// How many there are in this step.
    pub fn count(self, step: &Step) -> u32 {
        match self {
            Rows::Tokens => step.num_tokens,
            Rows::Sampled => step.num_rows,
        }
    }
}

/// At most this many rows are "few": they take the kernels made for decoding. One is a class of its own where a matrix is
/// multiplied.
pub const FEW_ROWS: u32 = 4;

/// When a dispatch takes part in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowClass {
    /// Always.
    Any,
    /// When there are so many of the given rows, both ends included.
    Between(Rows, u32, u32),
    /// When cache rows are to be copied.
    Copies,
    /// When log-probabilities are wanted.
    Tops,
    /// When tokens are to be pooled.
    Pools,
}

impl RowClass {
    /// When there is one of the given rows, or none.
    pub const fn one(rows: Rows) -> Self {
        Self::Between(rows, 0, 1)
    }

    /// When there are at most [`FEW_ROWS`].
    pub const fn few(rows: Rows) -> Self {
        Self::Between(rows, 0, FEW_ROWS)
    }

    /// When there are several, and at most [`FEW_ROWS`].
    pub const fn several(rows: Rows) -> Self {
        Self::Between(rows, 2, FEW_ROWS)
    }

    /// When there are more than one.
    pub const fn more_than_one(rows: Rows) -> Self {
        Self::Between(rows, 2, u32::MAX)
    }

    /// When there are more than [`FEW_ROWS`].
    pub const fn many(rows: Rows) -> Self {
        Self::Between(rows, FEW_ROWS + 1, u32::MAX)
    }

    /// Whether a step of these sizes runs the dispatch.
    pub fn runs(self, step: &Step) -> bool {
        match self {
            RowClass::Any => true,
            RowClass::Between(rows, least, most) => (least..=most).contains(&rows.count(step)),
            RowClass::Copies => step.num_copies > 0,
            RowClass::Tops => step.num_tops > 0,
            RowClass::Pools => step.num_pools > 0,
        }
    }
}

/// How a shader uses a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// `var<storage, read>`
    Read,
    /// `var<storage, read_write>`
    ReadWrite,
}

/// One operation with its numbers filled in: a WGSL shader and the CPU twin that defines it.
pub trait Kernel: fmt::Debug {
    /// The shader.
    fn shader(&self) -> Shader;
    /// How it uses its storage bindings, in binding order. The step's sizes are bound behind them, as a uniform.
    fn access(&self) -> &'static [Access];
    /// Values of its `override` constants.
    fn constants(&self) -> Vec<(&'static str, f64)>;
    /// Workgroups in x, y, z.
    fn grid(&self, step: &Step) -> [u32; 3];
    /// Does the same on the CPU.
    fn twin(&self, step: &Step, bindings: &Bindings<'_>);
    /// Bytes of weights that one run has to read, for the benchmark's account.
    fn weight_bytes(&self) -> u64 {
        0
    }
    /// Bytes of the KV cache that one run has to read for a single token at `position`, for the same account.
    fn cache_bytes(&self, _position: usize) -> u64 {
        0
    }
}

/// A kernel and the buffers it runs on.
#[derive(Debug)]
pub struct Dispatch {
    /// The operation.
    pub kernel: Box<dyn Kernel>,
    /// One buffer per storage binding.
    pub buffers: Vec<BufferId>,
    /// When it runs.
    pub class: RowClass,
}

/// Buffers and dispatches, in order.
#[derive(Debug, Default)]
pub struct Recording {
    buffers: Vec<BufferInfo>,
    dispatches: Vec<Dispatch>,
    num_before_draw: usize,
}

impl Recording {
    /// An empty recording.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a buffer of `size_words` 4-byte words, zeroed.
    ///
    /// # Panics
    /// If it has no words: bindings cannot be empty.
    pub fn buffer(&mut self, label: impl Into<String>, size_words: usize, purpose: Purpose) -> BufferId {
        let label = label.into();
        assert!(size_words > 0, "buffer {label} is empty");
        self.buffers.push(BufferInfo { label, size_words, purpose });
        BufferId(self.buffers.len() - 1)
    }

    /// Appends a dispatch.
    ///
    /// # Panics
    /// If the number of buffers differs from the kernel's bindings, or a buffer is bound twice.
    pub fn dispatch(&mut self, kernel: impl Kernel + 'static, buffers: &[BufferId], class: RowClass) {
        assert_eq!(kernel.access().len(), buffers.len(), "bindings of {kernel:?}");
        for (index, id) in buffers.iter().enumerate() {
            assert!(!buffers[..index].contains(id), "{} is bound twice in {kernel:?}", self.buffers[id.0].label);
        }
        self.dispatches.push(Dispatch { kernel: Box::new(kernel), buffers: buffers.to_vec(), class });
    }

    /// Says that dispatches from here on draw tokens: they alone read how.
    pub fn mark_draw(&mut self) {
        self.num_before_draw = self.dispatches.len();
    }

    /// Dispatches before those that draw tokens; 0 where that was not said.
    pub fn num_before_draw(&self) -> usize {
        self.num_before_draw
    }

    /// Drops the dispatches of other classes than `is_wanted` says.
    pub fn keep(&mut self, is_wanted: impl Fn(RowClass) -> bool) {
        let before = self.dispatches[..self.num_before_draw].iter();
        self.num_before_draw = before.filter(|dispatch| is_wanted(dispatch.class)).count();
        self.dispatches.retain(|dispatch| is_wanted(dispatch.class));
    }

    /// The buffers, by id.
    pub fn buffers(&self) -> &[BufferInfo] {
        &self.buffers
    }

    /// The dispatches, in order.
    pub fn dispatches(&self) -> &[Dispatch] {
        &self.dispatches
    }

    /// The name and size of a buffer.
    pub fn info(&self, id: BufferId) -> &BufferInfo {
        &self.buffers[id.0]
    }

    /// Bytes of all buffers that serve a purpose.
    pub fn bytes(&self, purpose: Purpose) -> u64 {
        self.buffers.iter().filter(|b| b.purpose == purpose).map(|b| 4 * b.size_words as u64).sum()
    }
}
