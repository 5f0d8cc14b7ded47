//! Many rows times a matrix, from tiles in workgroup memory; see `shaders/matmul_tile.wgsl`.

use half::f16;

use super::Projection;
use crate::compute::{Access, Bindings, Kernel, Rows, Shader, Step};

/// The piece that says which weight rows a tile has, and stores their sums.
pub(super) const TILE_ROWS: &str = include_str!("../../shaders/lib/tile_rows.wgsl");

/// A projection of many rows, for adapters whose workgroup memory is fast.
#[derive(Debug, Clone)]
pub struct MatMulTile {
    projection: Projection,
    tile_rows: u32,
    f16: bool,
}

impl MatMulTile {
    /// The projection, with tiles of 32 or 64 rows of x, in f32 or f16.
    pub fn new(projection: Projection, tile_rows: u32, f16: bool) -> Self {
        assert!(matches!(tile_rows, 32 | 64), "tiles of {tile_rows} rows");
        Self { projection, tile_rows, f16 }
    }
}

impl Kernel for MatMulTile {
    fn shader(&self) -> Shader {
        let shader = self.projection.shader("matmul_tile", include_str!("../../shaders/matmul_tile.wgsl"));
        let real = if self.f16 {
            include_str!("../../shaders/lib/real_f16.wgsl")
        } else {
            include_str!("../../shaders/lib/real_f32.wgsl")
        };
        Shader { pieces: vec![real, TILE_ROWS], f16: self.f16, ..shader }
    }

    fn access(&self) -> &'static [Access] {
        Projection::ACCESS
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let sampled = u8::from(self.projection.rows == Rows::Sampled);
        let mut constants = self.projection.constants();
        constants.extend([("SAMPLED", f64::from(sampled)), ("HEIGHT", f64::from(self.tile_rows / 4))]);
        constants
    }

    fn grid(&self, step: &Step) -> [u32; 3] {
        let outputs = if self.projection.epilogue.is_gated() { 32 } else { 64 };
        self.projection.grid(step, outputs, self.tile_rows)
    }

    fn twin(&self, step: &Step, bindings: &Bindings<'_>) {
        if !self.f16 {
            return self.projection.twin(step, bindings);
        }
        // No number that f16 cannot hold goes on as another: the outputs of its row are not numbers.
        let is_beyond = |x: f32| x.abs() > f32::from(f16::MAX);
        let x = bindings.f32(1).iter().map(|&x| if is_beyond(x) { f32::NAN } else { x }).collect::<Vec<_>>();
        self.projection.twin_of(step, &x, bindings);
    }

    fn weight_bytes(&self) -> u64 {
        self.projection.weight_bytes()
    }
}
