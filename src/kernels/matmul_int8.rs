//! Many rows times a matrix, in products of bytes; see `shaders/matmul_int8.wgsl`.

use super::Projection;
use super::matmul_tile::TILE_ROWS;
use crate::compute::{Access, Bindings, Kernel, Rows, Shader, Step};

/// The piece that multiplies bytes.
pub(super) const INT8: &str = include_str!("../../shaders/lib/int8.wgsl");

/// A projection of many rows whose activations are rounded to bytes: not the same numbers as the other kernels give.
#[derive(Debug, Clone)]
pub struct MatMulInt8(pub Projection);

impl Kernel for MatMulInt8 {
    fn shader(&self) -> Shader {
        let shader = self.0.shader("matmul_int8", include_str!("../../shaders/matmul_int8.wgsl"));
        Shader { pieces: vec![INT8, TILE_ROWS], ..shader }
    }

    fn access(&self) -> &'static [Access] {
        Projection::ACCESS
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.0.constants();
        constants.push(("SAMPLED", f64::from(u8::from(self.0.rows == Rows::Sampled))));
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        self.0.grid(step, if self.0.epilogue.is_gated() { 32 } else { 64 }, 32)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let mut x = bindings.f32(1).to_vec();
        x.chunks_exact_mut(32).for_each(round_to_bytes);
        self.0.twin_of(step, &x, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes()
    }
}

/// What is left of 32 values as bytes with a common scale.
pub(super) fn round_to_bytes(values: &mut [f32]) {
    let highest = values.iter().fold(0.0_f32, |highest, value| highest.max(value.abs()));
    if highest > 0.0 {
        let scale = highest / 127.0;
        values.iter_mut().for_each(|value| *value = (*value * (127.0 / highest)).round_ties_even() * scale);
    }
}
