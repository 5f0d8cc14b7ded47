// x_next[t, :] = x[t, :] + norm(o[t, :]) * w_post, then y[t, :] = norm(x_next[t, :]) * w_next: a block's closing norm and
// residual, and the norm that opens the next block (norm as in rms_norm.wgsl).
//
// LANES lanes share a row, GROUPS rows a workgroup. Grid: x = ceil(T / GROUPS).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override D: u32;
override EPSILON: f32;
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> o: array<vec4<f32>>; // [T, D / 4]
@group(0) @binding(1) var<storage, read> norms: array<vec4<f32>>; // [2, D / 4]: w_post, w_next
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>; // [T, D / 4]
@group(0) @binding(3) var<storage, read_write> x_next: array<vec4<f32>>; // [T, D / 4]
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>; // [T, D / 4]
@group(0) @binding(5) var<uniform> step: Step;

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let t = workgroup.x * GROUPS + local.y;
    // Lanes behind the last row read it again and store nothing: all lanes meet the same barriers.
    let row = min(t, step.num_tokens - 1u) * (D / 4u);
    var squares = vec4<f32>(0.0);
    for (var i = local.x; i < D / 4u; i += LANES) {
        squares += o[row + i] * o[row + i];
    }
    let sum = reduce_sum(squares.x + squares.y + squares.z + squares.w, local.x, local.y);
    let scale = 1.0 / sqrt(sum / f32(D) + EPSILON);

    squares = vec4<f32>(0.0);
    for (var i = local.x; i < D / 4u; i += LANES) {
        let value = x[row + i] + o[row + i] * scale * norms[i];
        squares += value * value;
    }
    let next_sum = reduce_sum(squares.x + squares.y + squares.z + squares.w, local.x, local.y);
    let next_scale = 1.0 / sqrt(next_sum / f32(D) + EPSILON);
    if (t < step.num_tokens) {
        for (var i = local.x; i < D / 4u; i += LANES) {
            let value = x[row + i] + o[row + i] * scale * norms[i];
            x_next[row + i] = value;
            y[row + i] = value * next_scale * norms[D / 4u + i];
        }
    }
}
