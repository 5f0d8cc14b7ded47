// copied[i] = source[i]. An invocation copies one quad; an x of the grid is at most 65,535 workgroups.
struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> step: Step;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) num: vec3<u32>) {
    let i = id.y * num.x * 256u + id.x;
    if (i < arrayLength(&source)) {
        copied[i] = source[i];
    }
}
