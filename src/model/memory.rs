//! How much memory keys and values take: arithmetic for any transformer, whether this engine runs it or not.
//!
//! A token has one row of keys and one of values in each layer, so the cache grows linearly with the context. A
//! sliding-window layer keeps no more rows than its window. What this engine allocates is a little more, in whole blocks:
//! [`super::plan`] tells that exactly.

use serde::Serialize;

use super::config::ModelConfig;
use crate::quant::Format;
use crate::{Error, Result};

/// Names of the formats that keys and values can be calculated in. The engine itself stores `f16` and `f32`.
pub const KV_FORMATS: [&str; 5] = ["f32", "f16", "bf16", "q8_0", "q4_0"];

/// Largest size that is taken for one, also where sizes have 32 bits: beyond this a caller has mixed something up.
const MAX_SIZE: usize = 1 << 30;

/// The numbers of a model that its KV cache depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    /// Layers that see the whole context.
    pub full_layers: usize,
    /// Layers that see only a window.
    pub sliding_layers: usize,
    /// Tokens that a sliding-window layer sees.
    pub window: usize,
    /// Heads of keys and values; with grouped queries, fewer than heads of queries.
    pub kv_heads: usize,
    /// Values of a head.
    pub head_dim: usize,
}

/// What a KV cache takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KvMemory {
    /// Bytes that a token adds while it is in every layer's window.
    pub bytes_per_token: u64,
    /// Bytes that a token adds beyond the window: of the layers that see the whole context.
    pub bytes_per_token_beyond_window: u64,
    /// Bytes of the layers that see the whole context.
    pub full_bytes: u64,
    /// Bytes of the sliding-window layers.
    pub sliding_bytes: u64,
    /// Bytes of all layers, for all sequences.
    pub total_bytes: u64,
}

impl KvShape {
    /// A model's.
    pub fn of(config: &ModelConfig) -> Self {
        let sliding_layers = (0..config.num_layers).filter(|&layer| config.is_sliding(layer)).count();
        Self {
            full_layers: config.num_layers - sliding_layers,
            sliding_layers,
            window: config.sliding.map_or(0, |sliding| sliding.window),
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
        }
    }

    /// What `num_sequences` contexts of `context` tokens take in a format of [`KV_FORMATS`], nothing shared.
    ///
    /// # Errors
    /// `bad_request` for an unknown format, for sizes that cannot be, and for sums beyond 64 bits.
    pub fn memory(&self, format: &str, context: usize, num_sequences: usize) -> Result<KvMemory> {
        let row_bytes = self.row_bytes(format)?;
        let sizes = [self.full_layers, self.sliding_layers, self.window, context, num_sequences];
        if let Some(size) = sizes.iter().find(|&&size| size > MAX_SIZE) {
            return Err(Error::BadRequest(format!("{size} is out of range: at most {MAX_SIZE} is allowed")));
        }
        if self.full_layers + self.sliding_layers == 0 {
            return Err(Error::BadRequest("a model has at least 1 layer".to_owned()));
        }
        if self.sliding_layers > 0 && self.window == 0 {
            return Err(Error::BadRequest("sliding-window layers need a window of at least 1 token".to_owned()));
        }
        // A key and a value.
        let of = |layers: usize, tokens: usize, sequences: usize| {
            let factors = [2, row_bytes, layers, tokens, sequences];
            let product = factors.iter().try_fold(1_u128, |product, &factor| product.checked_mul(factor as u128));
            product.and_then(|bytes| u64::try_from(bytes).ok())
        };
        let all = || {
            let full_bytes = of(self.full_layers, context, num_sequences)?;
            let sliding_bytes = of(self.sliding_layers, context.min(self.window), num_sequences)?;
            Some(KvMemory {
                bytes_per_token: of(self.full_layers + self.sliding_layers, 1, 1)?,
                bytes_per_token_beyond_window: of(self.full_layers, 1, 1)?,
                full_bytes,
                sliding_bytes,
                total_bytes: full_bytes.checked_add(sliding_bytes)?,
            })
        };
        all().ok_or_else(|| Error::BadRequest("the cache would take more than 2^64 bytes".to_owned()))
    }

    /// Bytes of one token's keys (or values) in one layer. Quantised formats store whole blocks.
    fn row_bytes(&self, name: &str) -> Result<usize> {
        let format = match name {
            "f32" => Format::F32,
            "f16" => Format::F16,
            "bf16" => Format::Bf16,
            "q8_0" => Format::Q8_0,
            "q4_0" => Format::Q4_0,
            _ => {
                let known = KV_FORMATS.join(", ");
                return Err(Error::BadRequest(format!("the KV format {name:?} is unknown; known are {known}")));
            }
        };
        let values = self.kv_heads.checked_mul(self.head_dim).filter(|values| (1..=1 << 24).contains(values));
        let values = values.ok_or_else(|| {
            Error::BadRequest(format!("{} KV heads of {} values are out of range", self.kv_heads, self.head_dim))
        })?;
        Ok(values.div_ceil(format.block_elements()) * format.block_bytes())
    }
}
