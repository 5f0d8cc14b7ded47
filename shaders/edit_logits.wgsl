// One sparse change to a row of logits: repetition penalty (Keskar et al. 2019), frequency and presence penalties
// (OpenAI), then the bias. Forbidden tokens carry a bias of -1e30, which stays finite. What
// the logit was is kept: a drawn token's log-probability is that of the model's own distribution.
//
// An invocation makes one edit; no two edits share a logit. Grid: x = ceil(edits / 64).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Edit { row: u32, token: u32, seen: u32, count: u32, bias: f32 }
struct Sampling {
    temperature: f32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    repetition_penalty: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
    seed_low: u32,
    seed_high: u32,
    counter: u32,
    mask: u32,
}

override V: u32;

@group(0) @binding(0) var<storage, read> edits: array<Edit>; // [edits]
@group(0) @binding(1) var<storage, read> samplings: array<Sampling>; // [R]
@group(0) @binding(2) var<storage, read_write> logits: array<f32>; // [R, V] f32
@group(0) @binding(3) var<storage, read_write> originals: array<f32>; // [edits] f32
@group(0) @binding(4) var<uniform> step: Step;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x >= step.num_edits) {
        return;
    }
    let edit = edits[global.x];
    let sampling = samplings[edit.row];
    let at = edit.row * V + edit.token;
    var logit = logits[at];
    originals[global.x] = logit;
    if (edit.seen != 0u) {
        logit = select(logit * sampling.repetition_penalty, logit / sampling.repetition_penalty, logit > 0.0);
    }
    if (edit.count > 0u) {
        logit -= f32(edit.count) * sampling.frequency_penalty + sampling.presence_penalty;
    }
    logits[at] = logit + edit.bias;
}
