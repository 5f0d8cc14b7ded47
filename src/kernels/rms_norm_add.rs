//! A block's closing norm, its residual, and the next block's norm; see `shaders/rms_norm_add.wgsl`.

use super::rms_norm::{RmsNorm, inverse_rms};
use crate::compute::{Access, Bindings, Kernel, Shader, Step, Tuning};

/// `x += norm(o) * w_post; y = norm(x) * w_next`, row by row. Shapes: o, x, y `[T, D]`, w_post, w_next `[D]`.
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
        let (o, w_post, w_next) = (bindings.f32(0), bindings.f32(1), bindings.f32(2));
        let (mut x, mut y) = (bindings.f32_mut(3), bindings.f32_mut(4));
        for t in 0..step.num_tokens as usize {
            let row = t * self.d..(t + 1) * self.d;
            let (o, x, y) = (&o[row.clone()], &mut x[row.clone()], &mut y[row]);
            let scale = inverse_rms(o, self.epsilon);
            for i in 0..self.d {
                x[i] += o[i] * scale * w_post[i];
            }
            let scale = inverse_rms(x, self.epsilon);
            for i in 0..self.d {
                y[i] = x[i] * scale * w_next[i];
            }
        }
    }
}
