//! Attention over the paged cache; see `shaders/attention.wgsl`.

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
const BLOCK_SIZE: usize = 16;

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
        vec![
            ("HEADS", constant(self.heads)),
            ("KV_HEADS", constant(self.kv_heads)),
            ("WINDOW", constant(self.window.unwrap_or(0))),
            ("TABLE_OFFSET", constant(self.table_offset)),
            ("TABLE_STRIDE", constant(self.table_stride)),
            ("KV_F16", f64::from(u8::from(self.kv == KvFormat::F16))),
            ("LANES", f64::from(self.tuning.lanes)),
            ("GROUPS", f64::from(self.tuning.groups())),
        ]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [(step.num_tokens * word(self.heads)).div_ceil(self.tuning.groups()), 1, 1]
    }

    fn cache_bytes(&self, position: usize) -> u64 {
        let num_seen = (position + 1).min(self.window.unwrap_or(usize::MAX));
        // Every query head reads the keys and values of its own key-value head.
        (2 * self.heads * num_seen * 4 * self.kv.row_words(self.head_dim)) as u64
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (q, k, v) = (bindings.f32(0), bindings.u32(1), bindings.u32(2));
        let (tokens, tables, mut out) = (bindings.u32(3), bindings.u32(4), bindings.f32_mut(5));
        let mut row = vec![0.0; self.head_dim];
        let mut scores = Vec::new();
        for t in 0..step.num_tokens as usize {
            let token = &tokens[t * TOKEN_WORDS..][..TOKEN_WORDS];
            let (position, sequence) = (token[1] as usize, token[2] as usize);
            let table = &tables[self.table_offset + sequence * self.table_stride..][..self.table_stride];
            let first = self.window.map_or(0, |window| (position + 1).saturating_sub(window));
            let slot = |j: usize| table[j / BLOCK_SIZE] as usize * BLOCK_SIZE + j % BLOCK_SIZE;
            for head in 0..self.heads {
                let kv_head = head * self.kv_heads / self.heads;
                let query = &q[(t * self.heads + head) * self.head_dim..][..self.head_dim];
                scores.clear();
                scores.extend((first..=position).map(|j| {
                    self.read(&k, slot(j) * self.kv_heads + kv_head, &mut row);
                    dot(query, &row)
                }));
                let highest = scores.iter().copied().fold(f32::MIN, f32::max);
                scores.iter_mut().for_each(|score| *score = (*score - highest).exp());
                let total: f32 = scores.iter().sum();
                let out = &mut out[(t * self.heads + head) * self.head_dim..][..self.head_dim];
                out.fill(0.0);
                for (j, weight) in (first..=position).zip(&scores) {
                    self.read(&v, slot(j) * self.kv_heads + kv_head, &mut row);
                    out.iter_mut().zip(&row).for_each(|(out, value)| *out += weight / total * value);
                }
            }
        }
    }
}

impl Attention {
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
