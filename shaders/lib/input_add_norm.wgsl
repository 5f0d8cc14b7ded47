// Input piece of matvec.wgsl: what rms_norm_add.wgsl does, on the way. x_next = x + norm(o) * w_post, and
// y = W (norm(x_next) * w_next); the second norm's factor comes at the end, as in input_norm.wgsl.
//
// Every workgroup computes x_next, one writes it: into another buffer than x, which the others still read.

@group(0) @binding(3) var<storage, read> o: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(4) var<storage, read> norm_weights: array<vec4<f32>>; // [2, K / 4]: w_post, w_next
@group(0) @binding(5) var<storage, read_write> x_next: array<vec4<f32>>; // [T, K / 4]

const NORMED: bool = true;

// The factor of norm(o).
fn input_factor(row: u32, lane: u32, group: u32) -> f32 {
    var squares = vec4<f32>(0.0);
    for (var i = lane; i < K / 4u; i += LANES) {
        squares += o[row + i] * o[row + i];
    }
    return 1.0 / sqrt(reduce_sum(total(squares), lane, group) / f32(K) + EPSILON);
}

fn input_quad(row: u32, i: u32, factor: f32, is_writer: bool) -> vec4<f32> {
    let value = x[row + i] + o[row + i] * factor * norm_weights[i];
    if (is_writer) {
        x_next[row + i] = value;
    }
    return value;
}

fn weighted(quad: vec4<f32>, i: u32) -> vec4<f32> {
    return quad * norm_weights[K / 4u + i];
}
