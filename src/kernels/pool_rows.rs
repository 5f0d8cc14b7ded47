//! Sums of neighbouring rows; see `shaders/pool_rows.wgsl`.

use super::{constant, word};
use crate::compute::{Access, Bindings, Kernel, Shader, Step};

/// Words of a pool: its first row and their number.
pub const POOL_WORDS: usize = 2;

/// `y[p]` is the sum of the rows of pool `p`. Shapes: x [T, D], pools [P, 2 words], y [P, D].
#[derive(Debug, Clone)]
pub struct PoolRows {
    /// D, a multiple of 4.
    pub d: usize,
}

impl Kernel for PoolRows {
    fn shader(&self) -> Shader {
        Shader::new("pool_rows", include_str!("../../shaders/pool_rows.wgsl"))
    }

    fn access(&self) -> &'static [Access] {
        &[Access::Read, Access::Read, Access::ReadWrite]
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![("D", constant(self.d))]
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        [word(self.d / 4).div_ceil(64), step.num_pools, 1]
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        let (x, pools, mut y) = (bindings.f32(0), bindings.u32(1), bindings.f32_mut(2));
        let pools = pools.chunks_exact(POOL_WORDS).take(step.num_pools as usize);
        for (pool, y) in pools.zip(y.chunks_exact_mut(self.d)) {
            y.fill(0.0);
            for row in x.chunks_exact(self.d).skip(pool[0] as usize).take(pool[1] as usize) {
                y.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    }
}
