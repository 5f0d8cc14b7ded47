//! What the three matrix kernels have in common: their numbers, their twin, and the choice among them.

use super::{MatMul, MatMulInt8, MatMulTile, MatVec, constant, word};
use crate::compute::{Access, Bindings, BufferId, Recording, RowClass, Rows, Shader, Step, Tuning};
use crate::quant::Format;

/// What becomes of a finished sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epilogue {
    /// Stored.
    Store,
    /// Added to what is there (residual).
    Add,
    /// `silu(gate) * up`: the weights hold `2N` rows, the gate's and then the up-projection's.
    SiluGate,
    /// `gelu(gate) * up`, with the tanh approximation of GELU.
    GeluGate,
}

impl Epilogue {
    /// Whether the weights hold a gate and an up-projection.
    pub fn is_gated(self) -> bool {
        matches!(self, Epilogue::SiluGate | Epilogue::GeluGate)
    }
}

/// `y[t, offset + n] = finish(sum over k of W[n, k] * x[t, k])`. Shapes: W [N or 2N, K], x [T, K], y [T, stride].
#[derive(Debug, Clone, Copy)]
pub struct Projection {
    /// How the weights are stored.
    pub format: Format,
    /// K, values in a weight row: a multiple of 32.
    pub k: usize,
    /// N, outputs.
    pub n: usize,
    /// What becomes of a sum.
    pub epilogue: Epilogue,
    /// Which rows are multiplied.
    pub rows: Rows,
    /// Values in a row of y.
    pub out_stride: usize,
    /// Where in a row of y the outputs begin.
    pub out_offset: usize,
}

impl Projection {
    /// Records the projection: one kernel for few rows, another for many, as the adapter wants them.
    pub fn record(self, recording: &mut Recording, tuning: &Tuning, weights: BufferId, x: BufferId, y: BufferId) {
        assert!(self.k.is_multiple_of(32), "{} weights in a row, not a multiple of 32", self.k);
        let num_weight_rows = self.n * if self.epilogue.is_gated() { 2 } else { 1 };
        let words = self.format.buffer_words(num_weight_rows, self.k);
        assert_eq!(recording.info(weights).size_words, words, "{} holds {self:?}", recording.info(weights).label);
        let buffers = [weights, x, y];
        recording.dispatch(MatVec::new(self, tuning), &buffers, RowClass::Few(self.rows));
        if tuning.int8 && self.format.is_packable() {
            recording.dispatch(MatMulInt8(self), &buffers, RowClass::Many(self.rows));
        } else if tuning.tiled {
            recording.dispatch(MatMulTile(self), &buffers, RowClass::Many(self.rows));
        } else {
            recording.dispatch(MatMul::new(self, tuning), &buffers, RowClass::Many(self.rows));
        }
    }

    pub(super) const ACCESS: &'static [Access] = &[Access::Read, Access::Read, Access::ReadWrite];

    pub(super) fn shader(&self, stem: &'static str, source: &'static str) -> Shader {
        Shader { format: Some(self.format.wgsl()), epilogue: true, ..Shader::new(stem, source) }
    }

    pub(super) fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("K", constant(self.k)),
            ("N", constant(self.n)),
            ("ROW_WORDS", constant(self.format.packed_row_words(self.k))),
            ("GATED", f64::from(u8::from(self.epilogue.is_gated()))),
            ("OUT_STRIDE", constant(self.out_stride)),
            ("OUT_OFFSET", constant(self.out_offset)),
            ("EPILOGUE", f64::from(self.epilogue as u8)),
        ]
    }

    pub(super) fn grid(&self, step: &Step, outputs_per_workgroup: u32, rows_per_workgroup: u32) -> [u32; 3] {
        let rows = self.rows.count(step).div_ceil(rows_per_workgroup);
        [word(self.n).div_ceil(outputs_per_workgroup), rows, 1]
    }

    pub(super) fn weight_bytes(&self) -> u64 {
        let num_weight_rows = self.n * if self.epilogue.is_gated() { 2 } else { 1 };
        4 * self.format.buffer_words(num_weight_rows, self.k) as u64
    }

    pub(super) fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.twin_of(step, &bindings.u32(0), &bindings.f32(1), &mut bindings.f32_mut(2));
    }

    pub(super) fn twin_of(&self, step: &Step, weights: &[u32], x: &[f32], y: &mut [f32]) {
        let words = self.format.packed_row_words(self.k);
        let mut first = vec![0.0; self.k];
        let mut second = vec![0.0; self.k];
        for n in 0..self.n {
            self.format.unpack_row(&weights[n * words..][..words], &mut first);
            if self.epilogue.is_gated() {
                self.format.unpack_row(&weights[(self.n + n) * words..][..words], &mut second);
            }
            for t in 0..self.rows.count(step) as usize {
                let row = &x[t * self.k..][..self.k];
                let a = dot(&first, row);
                let out = &mut y[t * self.out_stride + self.out_offset + n];
                *out = match self.epilogue {
                    Epilogue::Store => a,
                    Epilogue::Add => *out + a,
                    Epilogue::SiluGate => a * sigmoid(a) * dot(&second, row),
                    Epilogue::GeluGate => a * sigmoid(1.595_769 * (a + 0.044_715 * a * a * a)) * dot(&second, row),
                };
            }
        }
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// A sum over 16 interleaved parts, as vector units like it and as rounding likes it.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut parts = [0.0; 16];
    let (a_chunks, b_chunks) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for i in 0..16 {
            parts[i] += a[i] * b[i];
        }
    }
    parts.iter().sum::<f32>() + rest
}
