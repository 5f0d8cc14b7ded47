//! What a step takes on a device, from its sizes alone.
//!
//! ```text
//! step_ms = overhead_ms + 1000 x max(bytes / bytes_per_s, flops / flops_per_s)
//! bytes   = weight_bytes                                      every weight is read once a step, however many tokens
//!         + kv_bytes_per_token x sum of context lengths       every sequence's keys and values are read once
//!         + kv_bytes_per_token x tokens                       and those of the new tokens written
//! flops   = 2 x parameters x tokens                           a multiplication and an addition per weight and token
//!         + attention_flops_per_pair x sum over tokens of their context length
//! ```
//!
//! This is the roofline: reading and computing overlap fully and the slower one decides. Decode of few sequences is bound
//! by bytes, so more sequences in a step are almost free; from `flops_per_s x weight_bytes / (2 x parameters x
//! bytes_per_s)` tokens on, a step is bound by arithmetic and every token costs. Deliberately left out: that kernels
//! reach less of the peak on small shapes, that the output matrix is used for sampled rows only, tensor parallelism.

use serde::{Deserialize, Serialize};

use super::workload::in_range;
use crate::Result;
use crate::model::Batch;

/// A model on a device. Rates are what is reached, not what a data sheet says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// Of every step, whatever its size: launching, and reading back the ids, in milliseconds.
    pub overhead_ms: f64,
    /// Bytes of weights that a step reads.
    pub weight_bytes: f64,
    /// Bytes of keys and values that a token of context adds.
    pub kv_bytes_per_token: f64,
    /// Weights that a token is multiplied with.
    pub parameters: f64,
    /// Operations of attention per token and position that it attends to: 4 x query heads x values of a head x layers.
    pub attention_flops_per_pair: f64,
    /// Bytes per second from the device's memory.
    pub bytes_per_s: f64,
    /// Operations per second.
    pub flops_per_s: f64,
}

impl CostModel {
    /// SmolLM2 135M in Q4_1 on a software adapter (lavapipe on two busy cores): 120 ms a step and 60 ms a token, in round
    /// numbers after fits to the steps of `cargo bench --bench batching -- live`. Memory is never the limit.
    pub const SOFTWARE: Self = Self {
        overhead_ms: 120.0,
        weight_bytes: 94e6,
        kv_bytes_per_token: 23_040.0,
        parameters: 134.5e6,
        attention_flops_per_pair: 69_120.0,
        bytes_per_s: 5e9,
        flops_per_s: 4.5e9,
    };

    /// Llama 3.2 1B in Q4_K_M on a laptop's integrated GPU: 68 GB/s of shared memory and 2 Tflop/s of f32, of which 70 %
    /// and 40 % are reached; 3 ms a step for a page's submit and read-back.
    pub const INTEGRATED: Self = Self {
        overhead_ms: 3.0,
        weight_bytes: 0.81e9,
        kv_bytes_per_token: 32_768.0,
        parameters: 1.24e9,
        attention_flops_per_pair: 131_072.0,
        bytes_per_s: 48e9,
        flops_per_s: 0.8e12,
    };

    /// Llama 3.1 8B in f16 on an H100 SXM: 3.35 TB/s and 989 Tflop/s, of which 80 % and 50 % are reached; 2 ms a step for
    /// a server's scheduling, launching and sampling.
    pub const SERVER: Self = Self {
        overhead_ms: 2.0,
        weight_bytes: 16.06e9,
        kv_bytes_per_token: 131_072.0,
        parameters: 8.03e9,
        attention_flops_per_pair: 524_288.0,
        bytes_per_s: 2.7e12,
        flops_per_s: 495e12,
    };

    /// OPT 13B in f16 on an A100 of 40 GB, where the best-known figures for continuous batching were measured: 1.56 TB/s and
    /// 312 Tflop/s, of which 80 % and 50 % are reached.
    pub const A100_OPT_13B: Self = Self {
        overhead_ms: 2.0,
        weight_bytes: 25.7e9,
        kv_bytes_per_token: 819_200.0,
        parameters: 12.85e9,
        attention_flops_per_pair: 819_200.0,
        bytes_per_s: 1.25e12,
        flops_per_s: 156e12,
    };

    /// Checks every number.
    ///
    /// # Errors
    /// `bad_request` naming the field, what was asked and what is allowed.
    pub fn validate(&self) -> Result<()> {
        in_range("overhead_ms", self.overhead_ms, 0.0, 1e6)?;
        in_range("weight_bytes", self.weight_bytes, 0.0, 1e15)?;
        in_range("kv_bytes_per_token", self.kv_bytes_per_token, 0.0, 1e12)?;
        in_range("parameters", self.parameters, 1.0, 1e15)?;
        in_range("attention_flops_per_pair", self.attention_flops_per_pair, 0.0, 1e15)?;
        in_range("bytes_per_s", self.bytes_per_s, 1.0, 1e18)?;
        in_range("flops_per_s", self.flops_per_s, 1.0, 1e21)
    }

    /// What a batch takes, in milliseconds.
    pub fn step_ms(&self, batch: &Batch) -> f64 {
        let num_tokens = batch.tokens.len() as f64;
        // Tokens are grouped by sequence, positions ascending: the last of each sees its whole context.
        let context = |index: usize| f64::from(batch.tokens[index].position) + 1.0;
        let is_last =
            |index: usize| batch.tokens.get(index + 1).is_none_or(|next| next.sequence != batch.tokens[index].sequence);
        let (mut context_tokens, mut pairs) = (0.0, 0.0);
        for index in 0..batch.tokens.len() {
            pairs += context(index);
            if is_last(index) {
                context_tokens += context(index);
            }
        }
        self.step_ms_of(num_tokens, context_tokens, pairs)
    }

    /// The same of sums: tokens, context lengths of all sequences, and context lengths of all tokens.
    pub fn step_ms_of(&self, num_tokens: f64, context_tokens: f64, pairs: f64) -> f64 {
        let bytes = self.weight_bytes + self.kv_bytes_per_token * (context_tokens + num_tokens);
        let flops = 2.0 * self.parameters * num_tokens + self.attention_flops_per_pair * pairs;
        self.overhead_ms + 1000.0 * (bytes / self.bytes_per_s).max(flops / self.flops_per_s)
    }
}
