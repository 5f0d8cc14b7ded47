//! What the matrix kernels have in common: their numbers, their twin, and the choice among them.

use super::{MatMul, MatMulFew, MatMulInt8, MatMulTile, MatVec, constant, word};
use crate::compute::{Access, Bindings, BufferId, ManyRows, Recording, RowClass, Rows, Shader, Step, Tuning};
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
    /// `silu(what is there) * sum`: as `SiluGate`, when the gate's sums were stored before.
    TimesSilu,
    /// `gelu(what is there) * sum`.
    TimesGelu,
}

impl Epilogue {
    /// Whether the weights hold a gate and an up-projection.
    pub fn is_gated(self) -> bool {
        matches!(self, Epilogue::SiluGate | Epilogue::GeluGate)
    }

    /// What a gated one is in two steps: the gate's epilogue, and then the up-projection's.
    pub fn in_two_steps(self) -> Option<[Epilogue; 2]> {
        match self {
            Epilogue::SiluGate => Some([Epilogue::Store, Epilogue::TimesSilu]),
            Epilogue::GeluGate => Some([Epilogue::Store, Epilogue::TimesGelu]),
            _ => None,
        }
    }

    pub(super) fn finish(self, existing: f32, a: f32, b: f32) -> f32 {
        match self {
            Epilogue::Store => a,
            Epilogue::Add => existing + a,
            Epilogue::SiluGate => silu(a) * b,
            Epilogue::GeluGate => gelu(a) * b,
            Epilogue::TimesSilu => silu(existing) * a,
            Epilogue::TimesGelu => gelu(existing) * a,
        }
    }
}

/// What is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// The rows: of as many values as a weight row.
    pub rows: BufferId,
    /// What those rows are made of, where one is to be made on the way; `rows` is then read for several only.
    pub fused: Option<FusedNorm>,
}

/// A norm that is computed on the way into a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedNorm {
    /// `norm(x) * weights`, as [`super::RmsNorm`].
    Norm {
        /// [T, K]
        x: BufferId,
        /// `[K]`
        weights: BufferId,
    },
    /// `x_next = x + norm(o) * w_post`, and of that `norm(x_next) * w_next`, as [`super::RmsNormAdd`].
    AddNorm {
        /// [T, K]
        x: BufferId,
        /// [T, K]
        o: BufferId,
        /// [2, K]: w_post, w_next
        norms: BufferId,
        /// [T, K], written
        x_next: BufferId,
    },
}

impl From<BufferId> for Operand {
    fn from(rows: BufferId) -> Self {
        Self { rows, fused: None }
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
    /// Of the norms on the way, if there are any.
    pub epsilon: f32,
}

impl Projection {
    /// Records the projection: a kernel for one row, one for several and one for many, as the adapter wants them.
    pub fn record(
        self,
        recording: &mut Recording,
        tuning: &Tuning,
        weights: BufferId,
        x: impl Into<Operand>,
        y: BufferId,
    ) {
        let x = x.into();
        self.check(recording, weights);
        let (kernel, buffers) = MatVec::new(self, None, tuning, x, &[weights], y);
        recording.dispatch(kernel, &buffers, RowClass::one(self.rows));
        self.record_several(recording, tuning, [weights, x.rows, y]);
    }

    /// Records two projections of the same rows whose weights are in different formats: one row takes both in one
    /// dispatch. Their outputs are neighbours, or, where `gate` is given, those of a gate and an up-projection.
    pub fn record_pair(
        pair: [Self; 2],
        gate: Option<Epilogue>,
        recording: &mut Recording,
        tuning: &Tuning,
        weights: [BufferId; 2],
        x: Operand,
        y: BufferId,
    ) {
        let [first, second] = pair;
        for (projection, weights) in pair.iter().zip(weights) {
            projection.check(recording, weights);
        }
        let whole = match gate {
            Some(epilogue) => Self { epilogue, ..first },
            None => Self { n: first.n + second.n, ..first },
        };
        let (kernel, buffers) = MatVec::new(whole, Some((second.format, first.n)), tuning, x, &weights, y);
        recording.dispatch(kernel, &buffers, RowClass::one(first.rows));
        let steps = gate.and_then(Epilogue::in_two_steps);
        for (index, (projection, weights)) in pair.into_iter().zip(weights).enumerate() {
            let epilogue = steps.map_or(projection.epilogue, |steps| steps[index]);
            Self { epilogue, ..projection }.record_several(recording, tuning, [weights, x.rows, y]);
        }
    }

    /// Records it for several rows and for many.
    fn record_several(self, recording: &mut Recording, tuning: &Tuning, buffers: [BufferId; 3]) {
        recording.dispatch(MatMulFew::new(self, tuning), &buffers, RowClass::several(self.rows));
        let class = RowClass::many(self.rows);
        match tuning.many {
            ManyRows::Registers => recording.dispatch(MatMul::new(self, false, tuning), &buffers, class),
            ManyRows::Quads => recording.dispatch(MatMul::new(self, true, tuning), &buffers, class),
            ManyRows::Tile { rows } => recording.dispatch(MatMulTile::new(self, rows, false), &buffers, class),
            ManyRows::Int8 if self.format.is_packable() => recording.dispatch(MatMulInt8(self), &buffers, class),
            ManyRows::Int8 => recording.dispatch(MatMulTile::new(self, 64, false), &buffers, class),
            ManyRows::TileF16 { rows } => recording.dispatch(MatMulTile::new(self, rows, true), &buffers, class),
        }
    }

    fn check(&self, recording: &Recording, weights: BufferId) {
        assert!(self.k.is_multiple_of(32), "{} weights in a row, not a multiple of 32", self.k);
        let words = self.format.buffer_words(self.num_weight_rows(), self.k);
        assert_eq!(recording.info(weights).size_words, words, "{} holds {self:?}", recording.info(weights).label);
    }

    fn num_weight_rows(&self) -> usize {
        self.n * if self.epilogue.is_gated() { 2 } else { 1 }
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
        4 * self.format.buffer_words(self.num_weight_rows(), self.k) as u64
    }

    pub(super) fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.twin_of(step, &bindings.f32(1), bindings);
    }

    /// The twin, with these rows instead of those that are bound.
    pub(super) fn twin_of(&self, step: &Step, x: &[f32], bindings: &Bindings<'_>) {
        let (weights, mut y) = (bindings.u32(0), bindings.f32_mut(2));
        let words = self.format.packed_row_words(self.k);
        let num_rows = self.rows.count(step) as usize;
        self.multiply(&x[..num_rows * self.k], &mut y, |row, values| {
            self.format.unpack_row(&weights[row * words..][..words], values);
        });
    }

    /// All outputs for these rows of x; `unpack` decodes a weight row.
    pub(super) fn multiply(&self, x: &[f32], y: &mut [f32], unpack: impl Fn(usize, &mut [f32])) {
        let mut first = vec![0.0; self.k];
        let mut second = vec![0.0; self.k];
        for n in 0..self.n {
            unpack(n, &mut first);
            if self.epilogue.is_gated() {
                unpack(self.n + n, &mut second);
            }
            for (t, row) in x.chunks_exact(self.k).enumerate() {
                let out = &mut y[t * self.out_stride + self.out_offset + n];
                let b = if self.epilogue.is_gated() { dot(&second, row) } else { 0.0 };
                *out = self.epilogue.finish(*out, dot(&first, row), b);
            }
        }
    }
}

fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

fn gelu(x: f32) -> f32 {
    x * sigmoid(1.595_769 * (x + 0.044_715 * x * x * x))
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
