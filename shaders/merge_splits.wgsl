// The end of attend_split.wgsl when there are several splits: their weighted values, brought to a common maximum, added up
// and divided by the sum of the weights.
//
// Reads and writes `out` as attend_split.wgsl lays it out; the two parts do not overlap.
// One lane a quad of a head. Grid: x = ceil(T * H * HEAD_QUADS / WORKGROUP), nothing when there is one split.

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32, longest: u32 }

override HEADS: u32;
override HEAD_QUADS: u32;
override WINDOW: u32; // 0: none
override SPLIT_TOKENS: u32; // of a split at least
override MOST_SPLITS: u32;
override PARTIALS: u32; // vector of `out` where partial results begin
override WORKGROUP: u32;

@group(0) @binding(0) var<storage, read_write> out: array<vec4<f32>>; // [T, H, HEAD_QUADS], then the partial results
@group(0) @binding(1) var<uniform> step: Step;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x / HEAD_QUADS;
    if (row >= step.num_tokens * HEADS) {
        return;
    }
    var seen = max(step.longest, 1u);
    if (WINDOW > 0u) {
        seen = min(seen, WINDOW);
    }
    let span = max(SPLIT_TOKENS, (seen + MOST_SPLITS - 1u) / MOST_SPLITS);
    let num_splits = (seen + span - 1u) / span;
    let first = PARTIALS + row * num_splits * (HEAD_QUADS + 1u);
    var highest = out[first].x;
    for (var split = 1u; split < num_splits; split += 1u) {
        highest = max(highest, out[first + split * (HEAD_QUADS + 1u)].x);
    }
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    for (var split = 0u; split < num_splits; split += 1u) {
        let at = first + split * (HEAD_QUADS + 1u);
        let weight = exp(out[at].x - highest);
        total += out[at].y * weight;
        sum += out[at + 1u + id.x % HEAD_QUADS] * weight;
    }
    out[id.x] = sum / total;
}
