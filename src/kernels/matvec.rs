//! Few rows times a matrix; see `shaders/matvec.wgsl`.

use super::Projection;
use crate::compute::{Access, Bindings, Kernel, Reduce, Shader, Step, Tuning};

/// A projection of few rows.
#[derive(Debug, Clone)]
pub struct MatVec {
    projection: Projection,
    reduce: Reduce,
    lanes: u32,
    groups: u32,
}

impl MatVec {
    /// The projection, with the adapter's lanes.
    pub fn new(projection: Projection, tuning: &Tuning) -> Self {
        Self { projection, reduce: tuning.reduce, lanes: tuning.lanes, groups: tuning.groups() }
    }
}

impl Kernel for MatVec {
    fn shader(&self) -> Shader {
        let shader = self.projection.shader("matvec", include_str!("../../shaders/matvec.wgsl"));
        Shader { reduce: Some(self.reduce), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        Projection::ACCESS
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.projection.constants();
        constants.extend([("LANES", f64::from(self.lanes)), ("GROUPS", f64::from(self.groups))]);
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let outputs_per_pair = if self.projection.epilogue.is_gated() { 1 } else { 2 };
        self.projection.grid(step, outputs_per_pair * self.groups, 1)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        self.projection.twin(step, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.projection.weight_bytes()
    }
}
