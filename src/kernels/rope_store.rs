//! Rotates queries and keys and stores keys and values in the paged cache; see `shaders/rope_store.wgsl`.

use half::f16;

use super::rms_norm::inverse_rms;
use super::{KvFormat, TOKEN_WORDS, constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step, Tuning};

/// The piece that rotates heads and stores them.
pub(super) const ROTATE: &str = include_str!("../../shaders/lib/rotate.wgsl");

/// Shapes: qkv [T, (H + 2 KVH) * head_dim], angles [positions, rope_dim / 2, 2], norms [2, head_dim], q [T, H *
/// head_dim], caches [slots, KVH * head_dim].
#[derive(Debug, Clone)]
pub struct RopeStore {
    /// H.
    pub heads: usize,
    /// KVH.
    pub kv_heads: usize,
    /// Even.
    pub head_dim: usize,
    /// How many leading dimensions are rotated: even, at most `head_dim`.
    pub rope_dim: usize,
    /// Pairs are (i, i + rope_dim / 2) instead of (2i, 2i + 1).
    pub neox: bool,
    /// Heads of q and k are normalised first, with this epsilon.
    pub qk_norm: Option<f32>,
    /// Multiplies q, so that attention need not scale its scores.
    pub scale: f32,
    /// How the cache stores values.
    pub kv: KvFormat,
    /// The layer group, which says which of a token's slots is meant.
    pub group: usize,
    /// The adapter's lanes.
    pub tuning: Tuning,
}

impl Kernel for RopeStore {
    fn shader(&self) -> Shader {
        let shader = Shader::new("rope_store", include_str!("../../shaders/rope_store.wgsl"));
        Shader { reduce: Some(self.tuning.reduce), pieces: vec![ROTATE], ..shader }
    }

    fn access(&self) -> &'static [Access] {
        use Access::{Read, ReadWrite};
        &[Read, Read, Read, Read, ReadWrite, ReadWrite, ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let lanes = [("LANES", self.tuning.lanes), ("GROUPS", self.tuning.groups())];
        self.numbers().into_iter().chain(lanes.map(|(name, num)| (name, f64::from(num)))).collect()
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let heads = word(self.heads + 2 * self.kv_heads);
        [(step.num_tokens * heads).div_ceil(self.tuning.groups()), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (qkv, angles, norms, tokens) = (bindings.f32(0), bindings.f32(1), bindings.f32(2), bindings.u32(3));
        let (mut q, mut k, mut v) = (bindings.f32_mut(4), bindings.u32_mut(5), bindings.u32_mut(6));
        self.apply(step, (&qkv, &angles, &norms, &tokens), (&mut q, &mut k, &mut v));
    }
}

impl RopeStore {
    /// The constants that every kernel that rotates heads has.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        let flag = |value: bool| f64::from(u8::from(value));
        vec![
            ("HEADS", constant(self.heads)),
            ("KV_HEADS", constant(self.kv_heads)),
            ("HEAD_DIM", constant(self.head_dim)),
            ("ROPE_DIM", constant(self.rope_dim)),
            ("NEOX", flag(self.neox)),
            ("QK_NORM", flag(self.qk_norm.is_some())),
            ("EPSILON", f64::from(self.qk_norm.unwrap_or(0.0))),
            ("SCALE", f64::from(self.scale)),
            ("KV_F16", flag(self.kv == KvFormat::F16)),
            ("KV_GROUP", constant(self.group)),
        ]
    }

    /// Writes q and the rows of the caches from qkv, angles, norms and tokens.
    pub(super) fn apply(
        &self,
        step: &Step,
        (qkv, angles, norms, tokens): (&[f32], &[f32], &[f32], &[u32]),
        (q, k, v): (&mut [f32], &mut [u32], &mut [u32]),
    ) {
        let num_heads = self.heads + 2 * self.kv_heads;
        let angles_per_position = self.rope_dim;
        for t in 0..step.num_tokens as usize {
            let token = &tokens[t * TOKEN_WORDS..][..TOKEN_WORDS];
            let angles = &angles[token[1] as usize * angles_per_position..][..angles_per_position];
            let slot = token[3 + self.group] as usize;
            for head in 0..num_heads {
                let input = &qkv[(t * num_heads + head) * self.head_dim..][..self.head_dim];
                if head < self.heads {
                    let mut values = self.rotate(input, &norms[..self.head_dim.min(norms.len())], angles);
                    values.iter_mut().for_each(|value| *value *= self.scale);
                    q[(t * self.heads + head) * self.head_dim..][..self.head_dim].copy_from_slice(&values);
                } else if head < self.heads + self.kv_heads {
                    let norm = norms.get(self.head_dim..2 * self.head_dim).unwrap_or_default();
                    let values = self.rotate(input, norm, angles);
                    self.store(k, slot * self.kv_heads + head - self.heads, &values);
                } else {
                    self.store(v, slot * self.kv_heads + head - self.heads - self.kv_heads, input);
                }
            }
        }
    }

    fn rotate(&self, input: &[f32], norm: &[f32], angles: &[f32]) -> Vec<f32> {
        let mut values = input.to_vec();
        if let Some(epsilon) = self.qk_norm {
            let scale = inverse_rms(input, epsilon);
            values.iter_mut().zip(norm).for_each(|(value, w)| *value *= scale * w);
        }
        let half = self.rope_dim / 2;
        for i in 0..half {
            let (first, second) = if self.neox { (i, i + half) } else { (2 * i, 2 * i + 1) };
            let (cos, sin) = (angles[2 * i], angles[2 * i + 1]);
            let (a, b) = (values[first], values[second]);
            values[first] = a * cos - b * sin;
            values[second] = b * cos + a * sin;
        }
        values
    }

    fn store(&self, cache: &mut [u32], row: usize, values: &[f32]) {
        match self.kv {
            KvFormat::F32 => {
                cache[row * self.head_dim..][..self.head_dim].copy_from_slice(bytemuck::cast_slice(values));
            }
            KvFormat::F16 => {
                let words = &mut cache[row * self.head_dim / 2..][..self.head_dim / 2];
                for (word, pair) in words.iter_mut().zip(values.chunks_exact(2)) {
                    let [low, high] = [pair[0], pair[1]].map(half);
                    *word = u32::from(low) | u32::from(high) << 16;
                }
            }
        }
    }
}

/// The bits of the nearest finite f16; NaN for what is not finite, so that nothing is drawn from it.
fn half(value: f32) -> u16 {
    const NAN: u16 = 0x7e00;
    if value.is_finite() { f16::from_f32(value.clamp(-65504.0, 65504.0)).to_bits() } else { NAN }
}
