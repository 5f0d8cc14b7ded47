// y[r, :] = x[rows[r], :]: the tokens whose logits are wanted, side by side.
//
// An invocation copies one quad. Grid: x = ceil(R * D / 4 / 64).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override D: u32;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [T, D / 4]
@group(0) @binding(1) var<storage, read> rows: array<u32>; // [R]
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [R, D / 4]
@group(0) @binding(3) var<uniform> step: Step;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let r = global.x / (D / 4u);
    let i = global.x % (D / 4u);
    if (r < step.num_rows) {
        y[global.x] = x[rows[r] * (D / 4u) + i];
    }
}
