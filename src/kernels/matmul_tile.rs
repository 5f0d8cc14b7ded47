//! Many rows times a matrix, from tiles in workgroup memory; see `shaders/matmul_tile.wgsl`.

use super::Projection;
use crate::compute::{Access, Bindings, Kernel, Rows, Shader, Step};

/// A projection of many rows, for adapters whose workgroup memory is fast.
#[derive(Debug, Clone)]
pub struct MatMulTile(pub Projection);

impl Kernel for MatMulTile {
    fn shader(&self) -> Shader {
        self.0.shader("matmul_tile", include_str!("../../shaders/matmul_tile.wgsl"))
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
        self.0.twin(step, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.0.weight_bytes()
    }
}
