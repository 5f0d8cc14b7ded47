//! The rows whose logits are wanted, side by side; see `shaders/gather_rows.wgsl`.

use super::{constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// `y[r] = x[rows[r]]`. Shapes: x [T, D], y [R, D].
#[derive(Debug, Clone)]
pub struct GatherRows {
    /// D, a multiple of 4.
    pub d: usize,
}

impl Kernel for GatherRows {
    fn shader(&self) -> Shader {
        Shader::new("gather_rows", include_str!("../../shaders/gather_rows.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("D", constant(self.d))]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [(step.num_rows * word(self.d / 4)).div_ceil(64), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (x, rows, mut y) = (bindings.f32(0), bindings.u32(1), bindings.f32_mut(2));
        for r in 0..step.num_rows as usize {
            y[r * self.d..][..self.d].copy_from_slice(&x[rows[r] as usize * self.d..][..self.d]);
        }
    }
}
