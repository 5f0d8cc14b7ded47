//! Two to four rows times a matrix; see `shaders/matmul_few.wgsl`.

use super::Projection;
use crate::compute::{Access, Bindings, Kernel, Lanes, Rows, Shader, Step, Tuning};

/// A projection of several rows that are few: what a step of a small batch is made of.
#[derive(Debug, Clone)]
pub struct MatMulFew {
    projection: Projection,
    lanes: Lanes,
}

impl MatMulFew {
    /// The projection, with the adapter's lanes.
    pub fn new(projection: Projection, tuning: &Tuning) -> Self {
        Self { projection, lanes: tuning.matvec }
    }
}

impl Kernel for MatMulFew {
    fn shader(&self) -> Shader {
        let shader = self.projection.shader("matmul_few", include_str!("../../shaders/matmul_few.wgsl"));
        Shader { reduce: Some(self.lanes.reduce), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        Projection::ACCESS
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let sampled = u8::from(self.projection.rows == Rows::Sampled);
        let mut constants = self.projection.constants();
        constants.extend([
            ("LANES", f64::from(self.lanes.lanes)),
            ("GROUPS", f64::from(self.lanes.groups())),
            ("SAMPLED", f64::from(sampled)),
        ]);
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let outputs_per_group = if self.projection.epilogue.is_gated() { 2 } else { 4 };
        self.projection.grid(step, outputs_per_group * self.lanes.groups(), 4)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.projection.twin(step, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.projection.weight_bytes()
    }
}
