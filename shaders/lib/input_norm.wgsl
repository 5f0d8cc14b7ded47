// Input piece of matvec.wgsl: y = W (norm(x) * norm_weights) with the norm of rms_norm.wgsl. Its factor is the same for
// a whole row of x, so the sums are multiplied by it at the end, and the squares are added up on the way there.

@group(0) @binding(3) var<storage, read> norm_weights: array<vec4<f32>>; // [K / 4]

const NORMED: bool = true;

fn input_factor(row: u32, lane: u32, group: u32) -> f32 {
    return 1.0;
}

fn input_quad(row: u32, i: u32, factor: f32, is_writer: bool) -> vec4<f32> {
    return x[row + i];
}

fn weighted(quad: vec4<f32>, i: u32) -> vec4<f32> {
    return quad * norm_weights[i];
}
