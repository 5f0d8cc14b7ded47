// The logit that the drawn token of a row had before edits changed it: what edit_logits kept, if one did, else what is
// there still. Masks change no token that is drawn.
//
// 64 lanes look through the edits; a workgroup does one row. Grid: x = R.

struct Edit { row: u32, token: u32, seen: u32, count: u32, bias: f32 }

override V: u32;
override LANES: u32; // 64
override GROUPS: u32; // 1

const SCORES = 23u;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [R, V] f32
@group(0) @binding(1) var<storage, read> ids: array<u32>; // [R]
@group(0) @binding(2) var<storage, read> edits: array<Edit>; // [edits]
@group(0) @binding(3) var<storage, read> originals: array<f32>; // [edits] f32
@group(0) @binding(4) var<storage, read> tops: array<u32>; // [R]: 0 for none; else the step's edits above the lowest byte
@group(0) @binding(5) var<storage, read_write> scores: array<f32>; // [R, SCORES] f32

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let lane = local.x;
    let row = workgroup.x;
    if (tops[row] == 0u) {
        return;
    }
    let id = ids[row];
    var found = 0xffffffffu;
    // Not the step's own number, a uniform: see docs/kernels.md.
    let num_edits = tops[row] >> 8u;
    for (var i = lane; i < num_edits; i += LANES) {
        if (edits[i].row == row && edits[i].token == id) {
            found = i;
        }
    }
    found = reduce_min_u32(found, lane, 0u);
    // A broken row draws no token.
    if (lane == 0u && id < V) {
        var logit = logits[row * V + id];
        if (found != 0xffffffffu) {
            logit = originals[found];
        }
        scores[row * SCORES + 2u] = logit;
    }
}
