//! One row times a matrix, or two of different formats; see `shaders/matvec.wgsl`.

use super::matmul_int8::{INT8, round_to_bytes};
use super::projection::{FusedNorm, Operand};
use super::rms_norm::normed;
use super::rms_norm_add::add_normed;
use super::{Projection, constant};
use crate::compute::Access::{Read, ReadWrite};
use crate::compute::{Access, Bindings, BufferId, Kernel, Reduce, Shader, Step, Tuning};
use crate::quant::Format;

/// What becomes of x on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Plain,
    Norm,
    AddNorm,
}

impl Input {
    fn source(self) -> &'static str {
        match self {
            Input::Plain => include_str!("../../shaders/lib/input_plain.wgsl"),
            Input::Norm => include_str!("../../shaders/lib/input_norm.wgsl"),
            Input::AddNorm => include_str!("../../shaders/lib/input_add_norm.wgsl"),
        }
    }
}

/// A projection of one row.
#[derive(Debug, Clone)]
pub struct MatVec {
    /// Of all outputs. Its format is that of the first weight rows.
    projection: Projection,
    /// The format of the weight rows from a certain one on, which are in a buffer of their own.
    second: Option<(Format, usize)>,
    input: Input,
    /// In products of bytes.
    is_int8: bool,
    rows_per_lane: u32,
    reduce: Reduce,
    lanes: u32,
    groups: u32,
}

impl MatVec {
    /// The kernel, with the adapter's lanes, and its buffers. With `second`, the weight rows from a certain one on are
    /// those of a second buffer, in another format.
    pub fn new(
        projection: Projection,
        second: Option<(Format, usize)>,
        tuning: &Tuning,
        x: Operand,
        weights: &[BufferId],
        y: BufferId,
    ) -> (Self, Vec<BufferId>) {
        let (input, mut buffers) = match x.fused {
            None => (Input::Plain, vec![weights[0], x.rows, y]),
            Some(FusedNorm::Norm { x, weights: norm }) => (Input::Norm, vec![weights[0], x, y, norm]),
            Some(FusedNorm::AddNorm { x, o, norms, x_next }) => {
                (Input::AddNorm, vec![weights[0], x, y, o, norms, x_next])
            }
        };
        buffers.extend(&weights[1..]);
        let (reduce, lanes, groups) = (tuning.matvec.reduce, tuning.matvec.lanes, tuning.matvec.groups());
        let is_packable = projection.format.is_packable() && second.is_none_or(|(format, _)| format.is_packable());
        let (is_int8, rows_per_lane) = (tuning.one_in_bytes && is_packable, tuning.rows_per_lane);
        (Self { projection, second, input, is_int8, rows_per_lane, reduce, lanes, groups }, buffers)
    }

    /// The rows that are multiplied; those of the residual stream are written on the way.
    fn input(&self, num_rows: usize, bindings: &Bindings<'_>) -> Vec<f32> {
        let (k, epsilon) = (self.projection.k, self.projection.epsilon);
        let x = bindings.f32(1);
        let mut rows = x[..num_rows * k].to_vec();
        match self.input {
            Input::Plain => {}
            Input::Norm => {
                let norm = bindings.f32(3);
                for (row, x) in rows.chunks_exact_mut(k).zip(x.chunks_exact(k)) {
                    normed(x, &norm, epsilon, row);
                }
            }
            Input::AddNorm => {
                let (o, norms, mut x_next) = (bindings.f32(3), bindings.f32(4), bindings.f32_mut(5));
                for (t, row) in rows.chunks_exact_mut(k).enumerate() {
                    let range = t * k..(t + 1) * k;
                    let x_next = &mut x_next[range.clone()];
                    add_normed(&x[range.clone()], &o[range], &norms[..k], epsilon, x_next);
                    normed(x_next, &norms[k..], epsilon, row);
                }
            }
        }
        rows
    }
}

impl Kernel for MatVec {
    fn shader(&self) -> Shader {
        let shader = self.projection.shader("matvec", include_str!("../../shaders/matvec.wgsl"));
        let mut pieces = match (self.is_int8, self.second) {
            (false, None) => vec![include_str!("../../shaders/lib/weights_one.wgsl")],
            (false, Some(_)) => vec![include_str!("../../shaders/lib/weights_two.wgsl")],
            (true, None) => vec![include_str!("../../shaders/lib/packed_one.wgsl")],
            (true, Some(_)) => vec![include_str!("../../shaders/lib/packed_two.wgsl")],
        };
        pieces.push(self.input.source());
        if self.is_int8 {
            pieces.extend([INT8, include_str!("../../shaders/lib/product_int8.wgsl")]);
        } else {
            pieces.push(include_str!("../../shaders/lib/product_f32.wgsl"));
        }
        let second = self.second.map(|(format, _)| (format.wgsl(), self.access().len() - 1));
        Shader { second, pieces, reduce: Some(self.reduce), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        match (self.input, self.second) {
            (Input::Plain, None) => Projection::ACCESS,
            (Input::Plain, Some(_)) | (Input::Norm, None) => &[Read, Read, ReadWrite, Read],
            (Input::Norm, Some(_)) => &[Read, Read, ReadWrite, Read, Read],
            (Input::AddNorm, None) => &[Read, Read, ReadWrite, Read, Read, ReadWrite],
            (Input::AddNorm, Some(_)) => &[Read, Read, ReadWrite, Read, Read, ReadWrite, Read],
        }
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let k = self.projection.k;
        let (second_words, split) = match self.second {
            None => (0, 2 * self.projection.n),
            Some((format, split)) => (format.packed_row_words(k), split),
        };
        let mut constants = self.projection.constants();
        constants.extend([
            ("ROW_WORDS_2", constant(second_words)),
            ("SPLIT", constant(split)),
            ("EPSILON", f64::from(self.projection.epsilon)),
            ("ROWS", f64::from(self.rows_per_lane)),
            ("LANES", f64::from(self.lanes)),
            ("GROUPS", f64::from(self.groups)),
        ]);
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let outputs = self.rows_per_lane / if self.projection.epilogue.is_gated() { 2 } else { 1 };
        self.projection.grid(step, outputs * self.groups, 1)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let p = &self.projection;
        let mut rows = self.input(p.rows.count(step) as usize, bindings);
        if self.is_int8 {
            rows.chunks_exact_mut(32).for_each(round_to_bytes);
        }
        let first = (p.format, bindings.u32(0));
        let second = self.second.map(|(format, split)| (format, bindings.u32(self.access().len() - 1), split));
        p.multiply(&rows, &mut bindings.f32_mut(2), |row, values| {
            let (format, weights, row) = match &second {
                Some((format, weights, split)) if row >= *split => (*format, weights, row - split),
                _ => (first.0, &first.1, row),
            };
            let words = format.packed_row_words(p.k);
            format.unpack_row(&weights[row * words..][..words], values);
        });
    }

    fn weight_bytes(&self) -> u64 {
        let p = &self.projection;
        let num_rows = p.n * if p.epilogue.is_gated() { 2 } else { 1 };
        let Some((format, split)) = self.second else { return p.weight_bytes() };
        4 * (p.format.buffer_words(split, p.k) + format.buffer_words(num_rows - split, p.k)) as u64
    }
}
