//! Tables of rotation angles, made in double precision.

use super::config::Rope;

/// cos and sin of every rotated pair at positions `first..first + num`. Shape [num, dim / 2, 2]. `factors` divide the
/// frequencies, one per pair; empty means none.
pub(super) fn angles(rope: &Rope, factors: &[f32], first: usize, num: usize) -> Vec<f32> {
    let half = rope.dim / 2;
    #[expect(clippy::cast_precision_loss, reason = "dimensions and positions are below 2^24")]
    let exact = |size: usize| size as f64;
    let frequencies: Vec<f64> = (0..half)
        .map(|pair| {
            let frequency = rope.base.powf(-2.0 * exact(pair) / exact(rope.dim)) / rope.divisor;
            frequency / factors.get(pair).map_or(1.0, |&factor| factor.into())
        })
        .collect();
    let mut table = Vec::with_capacity(num * rope.dim);
    for position in first..first + num {
        for frequency in &frequencies {
            let (sin, cos) = (exact(position) * frequency).sin_cos();
            #[expect(clippy::cast_possible_truncation, reason = "rounding to single precision is the point")]
            table.extend([cos as f32, sin as f32]);
        }
    }
    table
}
