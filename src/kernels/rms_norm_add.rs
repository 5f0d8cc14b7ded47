//! A block's closing norm, its residual, and the next block's norm; see `shaders/rms_norm_add.wgsl`.

use super::rms_norm::{RmsNorm, inverse_rms, normed};
use crate::compute::{Access, Bindings, Kernel, Shader, Step, Tuning};

/// `x_next = x + norm(o) * w_post; y = norm(x_next) * w_next`, row by row. Shapes: o, x, x_next, y `[T, D]`; w_post and
/// w_next are the two rows of one buffer.
#[derive(Debug, Clone)]
pub struct RmsNormAdd {
    d: usize,
    epsilon: f32,
    norm: RmsNorm,
}

impl RmsNormAdd {
    /// Rows of `d` values (a multiple of 4), with the adapter's lanes.
    pub fn new(d: usize, epsilon: f32, tuning: &Tuning) -> Self {
        Self { d, epsilon, norm: RmsNorm::new(d, epsilon, tuning) }
    }
}

impl Kernel for RmsNormAdd {
    fn shader(&self) -> Shader {
        let shader = Shader::new("rms_norm_add", include_str!("../../shaders/rms_norm_add.wgsl"));
        Shader { reduce: self.norm.shader().reduce, ..shader }
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::Read, Access::ReadWrite, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        self.norm.constants()
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        self.norm.grid(step)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (o, norms, x) = (bindings.f32(0), bindings.f32(1), bindings.f32(2));
        let (mut x_next, mut y) = (bindings.f32_mut(3), bindings.f32_mut(4));
        for row in (0..step.num_tokens as usize).map(|t| t * self.d..(t + 1) * self.d) {
            let x_next = &mut x_next[row.clone()];
            add_normed(&x[row.clone()], &o[row.clone()], &norms[..self.d], self.epsilon, x_next);
            normed(x_next, &norms[self.d..], self.epsilon, &mut y[row]);
        }
    }
}

/// `y = x + norm(o) * w`, for one row.
pub(super) fn add_normed(x: &[f32], o: &[f32], w: &[f32], epsilon: f32, y: &mut [f32]) {
    let scale = inverse_rms(o, epsilon);
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[i] + o[i] * scale * w[i];
    }
}
