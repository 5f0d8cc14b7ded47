//! Root-mean-square normalisation; see `shaders/rms_norm.wgsl`.

use super::constant;
use crate::compute::{Access, Bindings, Kernel, Reduce, Shader, Step, Tuning};

/// `y = x / sqrt(mean(x^2) + epsilon) * w`, row by row. Shapes: x, y `[T, D]`, w `[D]`.
#[derive(Debug, Clone)]
pub struct RmsNorm {
    d: usize,
    epsilon: f32,
    reduce: Reduce,
    lanes: u32,
    groups: u32,
}

impl RmsNorm {
    /// The norm of rows of `d` values (a multiple of 4), with the adapter's lanes.
    pub fn new(d: usize, epsilon: f32, tuning: &Tuning) -> Self {
        Self { d, epsilon, reduce: tuning.reduce, lanes: tuning.lanes, groups: tuning.groups() }
    }
}

impl Kernel for RmsNorm {
    fn shader(&self) -> Shader {
        let shader = Shader::new("rms_norm", include_str!("../../shaders/rms_norm.wgsl"));
        Shader { reduce: Some(self.reduce), ..shader }
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("D", constant(self.d)),
            ("EPSILON", f64::from(self.epsilon)),
            ("LANES", f64::from(self.lanes)),
            ("GROUPS", f64::from(self.groups)),
        ]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [step.num_tokens.div_ceil(self.groups), 1, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (x, w, mut y) = (bindings.f32(0), bindings.f32(1), bindings.f32_mut(2));
        for row in (0..step.num_tokens as usize).map(|t| t * self.d..(t + 1) * self.d) {
            normed(&x[row.clone()], &w, self.epsilon, &mut y[row]);
        }
    }
}

/// `y = norm(x) * w`, for one row.
pub(super) fn normed(x: &[f32], w: &[f32], epsilon: f32, y: &mut [f32]) {
    let scale = inverse_rms(x, epsilon);
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[i] * scale * w[i];
    }
}

/// `1 / sqrt(mean(x^2) + epsilon)`.
pub(super) fn inverse_rms(x: &[f32], epsilon: f32) -> f32 {
    let sum = super::projection::dot(x, x);
    #[expect(clippy::cast_precision_loss, reason = "row lengths are small")]
    let mean = sum / x.len() as f32;
    1.0 / (mean + epsilon).sqrt()
}
