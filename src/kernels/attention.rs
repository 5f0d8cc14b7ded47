//! Attention over the paged cache; see `shaders/attention.wgsl`.

use std::ops::Range;

use half::f16;

use super::projection::dot;
use super::{TOKEN_WORDS, constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step, Tuning};

/// How keys and values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvFormat {
    /// Half precision, two values in a word.
    F16,
    /// Single precision.
    F32,
}

impl KvFormat {
    /// Words of a row of `num_values` (even).
    pub fn row_words(self, num_values: usize) -> usize {
        match self {
            KvFormat::F16 => num_values / 2,
            KvFormat::F32 => num_values,
        }
    }
}

/// Shapes: q, out [T, H * head_dim], caches [slots, KVH * head_dim], tables [groups, S, stride].
#[derive(Debug, Clone)]
pub struct Attention {
    /// H.
    pub heads: usize,
    /// KVH, a divisor of H.
    pub kv_heads: usize,
    /// A multiple of 4.
    pub head_dim: usize,
    /// A sliding window's length in tokens.
    pub window: Option<usize>,
    /// Where the layer group's tables begin.
    pub table_offset: usize,
    /// Entries of one sequence's table.
    pub table_stride: usize,
    /// How the cache stores values.
    pub kv: KvFormat,
    /// The adapter's lanes.
    pub tuning: Tuning,
}

/// Consecutive tokens in a block of the cache.
pub(super) const BLOCK_SIZE: usize = 16;
/// The highest score of no position at all.
const LOWEST: f32 = -3.0e38;

impl Kernel for Attention {
    fn shader(&self) -> Shader {
        let shader = Shader::new("attention", include_str!("../../shaders/attention.wgsl"));
        let consts = vec![("HEAD_QUADS", word(self.head_dim / 4))];
        Shader { reduce: Some(self.tuning.reduce), consts, ..shader }
    }

    fn access(&self) -> &'static [Access] {
        use Access::{Read, ReadWrite};
        &[Read, Read, Read, Read, Read, ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let lanes = [("LANES", self.tuning.lanes), ("GROUPS", self.tuning.groups())];
        self.numbers().into_iter().chain(lanes.map(|(name, num)| (name, f64::from(num)))).collect()
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [(step.num_tokens * word(self.heads)).div_ceil(self.tuning.groups()), 1, 1]
    }

    fn cache_bytes(&self, position: usize) -> u64 {
        // Every query head reads the keys and values of its own key-value head.
        self.heads as u64 * self.head_bytes(self.num_seen(position))
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (q, k, v) = (bindings.f32(0), bindings.u32(1), bindings.u32(2));
        let (tokens, tables, mut out) = (bindings.u32(3), bindings.u32(4), bindings.f32_mut(5));
        for row in 0..step.num_tokens as usize * self.heads {
            let position = tokens[row / self.heads * TOKEN_WORDS + 1] as usize;
            let out = &mut out[row * self.head_dim..][..self.head_dim];
            let seen = position + 1 - self.num_seen(position)..position + 1;
            let (_, total) = self.part(row, seen, (&q, &k, &v), (&tokens, &tables), out);
            out.iter_mut().for_each(|value| *value /= total);
        }
    }
}

impl Attention {
    /// The constants that every kernel that attends has.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("HEADS", constant(self.heads)),
            ("KV_HEADS", constant(self.kv_heads)),
            ("WINDOW", constant(self.window.unwrap_or(0))),
            ("TABLE_OFFSET", constant(self.table_offset)),
            ("TABLE_STRIDE", constant(self.table_stride)),
            ("KV_F16", f64::from(u8::from(self.kv == KvFormat::F16))),
        ]
    }

    /// How many positions a token sees, its own included.
    pub(super) fn num_seen(&self, position: usize) -> usize {
        (position + 1).min(self.window.unwrap_or(usize::MAX))
    }

    /// Query heads that share a key-value head in one task, when each takes `quads` quads of what a lane can keep.
    pub(super) fn shared_heads(&self, quads: usize) -> usize {
        let all = self.heads / self.kv_heads;
        let fits = |num: &usize| all.is_multiple_of(*num) && num * quads <= self.tuning.query_quads;
        (1..=all.min(4)).rev().find(fits).unwrap_or(1)
    }

    /// Bytes of the keys and values of one key-value head at `num` positions.
    pub(super) fn head_bytes(&self, num: usize) -> u64 {
        (2 * num * 4 * self.kv.row_words(self.head_dim)) as u64
    }

    /// Attention of a (token, head) over some of the positions that it sees: the sum of values, weighted by the
    /// exponential of their scores' distance to the highest, in `out`; the highest score and the sum of the weights.
    pub(super) fn part(
        &self,
        row: usize,
        positions: Range<usize>,
        (q, k, v): (&[f32], &[u32], &[u32]),
        (tokens, tables): (&[u32], &[u32]),
        out: &mut [f32],
    ) -> (f32, f32) {
        let sequence = tokens[row / self.heads * TOKEN_WORDS + 2] as usize;
        let table = &tables[self.table_offset + sequence * self.table_stride..][..self.table_stride];
        let kv_head = row % self.heads * self.kv_heads / self.heads;
        let cache_row = |j: usize| {
            let slot = table[j / BLOCK_SIZE] as usize * BLOCK_SIZE + j % BLOCK_SIZE;
            slot * self.kv_heads + kv_head
        };
        let query = &q[row * self.head_dim..][..self.head_dim];
        let mut values = vec![0.0; self.head_dim];
        let scores = positions.clone().map(|j| {
            self.read(k, cache_row(j), &mut values);
            dot(query, &values)
        });
        let scores: Vec<_> = scores.collect();
        let highest = scores.iter().copied().fold(LOWEST, f32::max);
        out.fill(0.0);
        let mut total = 0.0;
        for (j, score) in positions.zip(scores) {
            let weight = (score - highest).exp();
            total += weight;
            self.read(v, cache_row(j), &mut values);
            out.iter_mut().zip(&values).for_each(|(out, value)| *out += weight * value);
        }
        (highest, total)
    }

    fn read(&self, cache: &[u32], row: usize, values: &mut [f32]) {
        match self.kv {
            KvFormat::F32 => {
                values.copy_from_slice(bytemuck::cast_slice(&cache[row * self.head_dim..][..self.head_dim]));
            }
            KvFormat::F16 => {
                let words = &cache[row * self.head_dim / 2..][..self.head_dim / 2];
                let halves: &[f16] = bytemuck::cast_slice(words);
                values.iter_mut().zip(halves).for_each(|(value, half)| *value = half.to_f32());
            }
        }
    }
}
