//! What a model will need on a device, from its header alone.

use super::batch::BatchLimits;
use super::config::ModelConfig;
use super::forward::{Graph, Layout};
use crate::compute::{Purpose, Tuning};
use crate::gguf::Gguf;
use crate::kernels::{Attention, EDIT_WORDS, KvFormat};
use crate::kv::{BLOCK_SIZE, GroupConfig};
use crate::{Error, Result};

/// Context length when the caller names none: enough for a long chat, small enough for most devices.
pub const DEFAULT_CONTEXT_LENGTH: usize = 4096;
/// The shortest context that is worth loading a model for.
pub const MIN_CONTEXT_LENGTH: usize = 128;
/// Sequences in a step, when the caller does not say.
pub const DEFAULT_MAX_SEQUENCES: usize = 4;
/// Sequences in a step, at most: each takes a row of logits.
const MOST_SEQUENCES: usize = 256;
/// Logit edits of a row beyond one for each token of the context: biases.
const MAX_BIASES: usize = 1024;

/// What a caller may choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelOptions {
    /// Tokens a prompt and its answer may have; shortened to what the model and the memory allow unless given.
    pub context_length: Option<usize>,
    /// How keys and values are stored.
    pub kv: KvFormat,
    /// Bytes that the model may take on the device.
    pub memory_limit: Option<u64>,
    /// Tokens in a step.
    pub max_tokens: Option<usize>,
    /// Sequences in a step, 256 at most.
    pub max_sequences: Option<usize>,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self { context_length: None, kv: KvFormat::F16, memory_limit: None, max_tokens: None, max_sequences: None }
    }
}

/// What a device offers, as far as the plan depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Largest range that one binding may cover, in bytes.
    pub binding_bytes: u64,
    /// How kernels are chosen.
    pub tuning: Tuning,
}

impl DeviceInfo {
    /// WebGPU's default limits, for plans made where no device is open.
    pub const BASELINE: Self = Self { binding_bytes: 128 << 20, tuning: Tuning::GPU };
}

/// What a model needs, exactly: the plan is what will be allocated.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plan {
    /// Bytes of weights on the device.
    pub weights_bytes: u64,
    /// Of these, bytes that every step reads: all but an embedding table that is not the output matrix too, of which a
    /// token reads one row.
    pub step_weights_bytes: u64,
    /// Bytes of keys and values that each token of context adds.
    pub kv_bytes_per_token: u64,
    /// Bytes of the KV pools.
    pub kv_bytes: u64,
    /// Bytes of activations, logits and tables.
    pub scratch_bytes: u64,
    /// All of them.
    pub total_bytes: u64,
    /// Tokens a prompt and its answer may have.
    pub context_length: usize,
    /// The most that `context_length` may be: tokens the model was trained for, fewer where the adapter cannot walk them.
    pub max_context_length: usize,
}

/// Plans a model and records it.
///
/// # Errors
/// `out_of_memory` when not even [`MIN_CONTEXT_LENGTH`] (or the context asked for) fits, `context_too_long` when more is
/// asked for than the model was trained for or the adapter can walk, and those of [`Graph::record`].
pub fn plan(
    config: &ModelConfig,
    gguf: &Gguf,
    device: &DeviceInfo,
    options: &ModelOptions,
) -> Result<(Plan, Layout, Graph)> {
    let max = config.context_length.min(device.tuning.max_context(config.head_dim));
    if let Some(asked) = options.context_length.filter(|&asked| asked > max) {
        return Err(Error::ContextTooLong { asked, allowed: max });
    }
    if options.context_length.is_some_and(|asked| asked < BLOCK_SIZE) {
        let asked = options.context_length.unwrap_or(0);
        return Err(Error::BadRequest(format!("a context of {asked} tokens, at least {BLOCK_SIZE} needed")));
    }
    let mut context = options.context_length.unwrap_or(DEFAULT_CONTEXT_LENGTH.min(max));
    loop {
        let layout = layout(config, device, options, context);
        let graph = Graph::record(config, gguf, &layout)?;
        let plan = measure(config, gguf, &graph, &layout, context);
        let allowed = options.memory_limit.unwrap_or(u64::MAX);
        let largest_kv = largest_buffer(&graph, Purpose::Kv).max(largest_buffer(&graph, Purpose::Scratch));
        let lacks = if plan.total_bytes > allowed {
            Some(("the model with its context", plan.total_bytes, allowed))
        } else if largest_kv > device.binding_bytes {
            Some(("the largest buffer of the KV cache", largest_kv, device.binding_bytes))
        } else {
            None
        };
        let Some((what, asked, allowed)) = lacks else { return Ok((plan, layout, graph)) };
        if options.context_length.is_some() || context <= MIN_CONTEXT_LENGTH {
            return Err(Error::OutOfMemory { what: format!("{what} ({context} tokens)"), asked, allowed });
        }
        context = (context / 2).max(MIN_CONTEXT_LENGTH.min(max));
    }
}

fn layout(config: &ModelConfig, device: &DeviceInfo, options: &ModelOptions, context: usize) -> Layout {
    let max_tokens = options.max_tokens.unwrap_or(device.tuning.max_tokens).clamp(1, context);
    let max_sequences = options.max_sequences.unwrap_or(DEFAULT_MAX_SEQUENCES).clamp(1, MOST_SEQUENCES);
    // The logits of all are one buffer, and so are their edits.
    let words = config.vocab.max(EDIT_WORDS * (context + MAX_BIASES)) as u64;
    let bindable = usize::try_from(device.binding_bytes / (4 * words)).unwrap_or(usize::MAX);
    let max_sequences = max_sequences.min(bindable.max(1));
    let max_blocks = context.div_ceil(BLOCK_SIZE);
    let group = |window: Option<usize>| {
        let num_blocks = match window {
            None => max_blocks,
            // What a window can touch while the tokens of a step are added, for every sequence of the step.
            Some(window) => max_blocks.min((window + max_tokens).div_ceil(BLOCK_SIZE) + 1) * max_sequences,
        };
        GroupConfig { num_blocks, window }
    };
    let limits = BatchLimits {
        max_tokens,
        max_sequences,
        max_rows: max_sequences,
        max_edits: max_sequences * (context + MAX_BIASES),
        // A sequence that starts from cached rows copies at most one block's of each group.
        max_copies: max_sequences * BLOCK_SIZE * config.groups().len(),
        context_length: context,
        max_blocks,
    };
    let groups = config.groups().into_iter().map(group).collect();
    Layout { limits, groups, kv: options.kv, binding_bytes: device.binding_bytes, tuning: device.tuning }
}

impl Layout {
    /// Attention of the layers of a group, but for the window that the group's may have.
    pub(super) fn attention(&self, config: &ModelConfig, group: usize, window: Option<usize>) -> Attention {
        let ModelConfig { heads, kv_heads, head_dim, .. } = *config;
        let limits = &self.limits;
        Attention {
            heads,
            kv_heads,
            head_dim,
            window,
            table_offset: group * limits.max_sequences * limits.max_blocks,
            table_stride: limits.max_blocks,
            kv: self.kv,
            tuning: self.tuning,
        }
    }
}

fn measure(config: &ModelConfig, gguf: &Gguf, graph: &Graph, layout: &Layout, context_length: usize) -> Plan {
    let bytes = |purpose| graph.recording.bytes(purpose);
    let full = (0..config.num_layers).filter(|&layer| !config.is_sliding(layer)).count();
    let row_words = layout.kv.row_words(config.kv_heads * config.head_dim);
    let gathered_bytes = if gguf.find("output.weight").is_some() { embedding_bytes(graph) } else { 0 };
    Plan {
        weights_bytes: bytes(Purpose::Weights),
        step_weights_bytes: bytes(Purpose::Weights) - gathered_bytes,
        kv_bytes_per_token: (2 * full * 4 * row_words) as u64,
        kv_bytes: bytes(Purpose::Kv),
        scratch_bytes: bytes(Purpose::Scratch),
        total_bytes: bytes(Purpose::Weights) + bytes(Purpose::Kv) + bytes(Purpose::Scratch),
        context_length,
        max_context_length: config.context_length.min(layout.tuning.max_context(config.head_dim)),
    }
}

/// Bytes of the buffers that the embedding table is in, which have its name.
fn embedding_bytes(graph: &Graph) -> u64 {
    let buffers = graph.recording.buffers().iter().filter(|buffer| buffer.label.starts_with("token_embd.weight["));
    buffers.map(|buffer| 4 * buffer.size_words as u64).sum()
}

fn largest_buffer(graph: &Graph, purpose: Purpose) -> u64 {
    let buffers = graph.recording.buffers().iter().filter(|buffer| buffer.purpose == purpose);
    buffers.map(|buffer| 4 * buffer.size_words as u64).max().unwrap_or(0)
}
