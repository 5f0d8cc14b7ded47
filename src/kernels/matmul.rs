//! Many rows times a matrix, from registers; see `shaders/matmul.wgsl`.

use super::Projection;
use crate::compute::{Access, Bindings, Kernel, Rows, Shader, Step, Tuning};

/// A projection of many rows, without barriers.
#[derive(Debug, Clone)]
pub struct MatMul {
    projection: Projection,
    lanes: u32,
}

impl MatMul {
    /// The projection, with the adapter's workgroup size.
    pub fn new(projection: Projection, tuning: &Tuning) -> Self {
        Self { projection, lanes: tuning.workgroup }
    }
}

impl Kernel for MatMul {
    fn shader(&self) -> Shader {
        self.projection.shader("matmul", include_str!("../../shaders/matmul.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        Projection::ACCESS
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let sampled = u8::from(self.projection.rows == Rows::Sampled);
        let mut constants = self.projection.constants();
        constants.extend([("LANES", f64::from(self.lanes)), ("SAMPLED", f64::from(sampled))]);
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let outputs_per_lane = if self.projection.epilogue.is_gated() { 2 } else { 4 };
        self.projection.grid(step, outputs_per_lane * self.lanes, 8)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.projection.twin(step, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.projection.weight_bytes()
    }
}
