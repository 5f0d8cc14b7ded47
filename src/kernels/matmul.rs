//! Many rows times a matrix, from registers; see `shaders/matmul.wgsl`.

use super::Projection;
use crate::compute::{Access, Bindings, Kernel, Rows, Shader, Step, Tuning};

/// A projection of many rows, without barriers.
#[derive(Debug, Clone)]
pub struct MatMul {
    projection: Projection,
    /// Whether four lanes read rows of x for each other, which takes subgroups.
    in_quads: bool,
    lanes: u32,
}

impl MatMul {
    /// The projection, with the adapter's workgroup size.
    pub fn new(projection: Projection, in_quads: bool, tuning: &Tuning) -> Self {
        Self { projection, in_quads, lanes: tuning.workgroup }
    }
}

impl Kernel for MatMul {
    fn shader(&self) -> Shader {
        let shader = self.projection.shader("matmul", include_str!("../../shaders/matmul.wgsl"));
        let rows = if self.in_quads {
            include_str!("../../shaders/lib/rows_quad.wgsl")
        } else {
            include_str!("../../shaders/lib/rows_alone.wgsl")
        };
        Shader { pieces: vec![rows], subgroups: self.in_quads, ..shader }
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
        self.projection.grid(step, outputs_per_lane * self.lanes, 16)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.projection.twin(step, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.projection.weight_bytes()
    }
}
