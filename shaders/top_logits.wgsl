// The largest logits of the rows that want their log-probabilities, and what turns logits into those: the largest
// logit m and the sum of exp(logit - m) over the vocabulary, so that log p = logit - m - log(sum). Runs before anything
// changes the logits, so they are the model's own.
//
// A row says how many it wants. Each round takes the largest logit behind the one before, the smaller id of equals.
// What a vocabulary does not have so many of gets the id 0xffffffff.
//
// LANES lanes share a row; a workgroup does one row. Grid: x = R.

override V: u32;
override LANES: u32;
override GROUPS: u32; // 1

const MOST = 20u; // tokens of a row, at most
const SCORES = 23u; // m, the sum, room for the drawn token's logit, then MOST logits

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [R, V] f32
@group(0) @binding(1) var<storage, read> tops: array<u32>; // [R]: 0 for none; the lowest byte is one more than how many
@group(0) @binding(2) var<storage, read_write> ids: array<u32>; // [R, MOST]
@group(0) @binding(3) var<storage, read_write> scores: array<f32>; // [R, SCORES] f32

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let lane = local.x;
    let row = workgroup.x * V;
    let num = min(tops[workgroup.x] & 0xffu, MOST + 1u);
    if (num == 0u) {
        return;
    }
    var highest = -3.0e38;
    for (var i = lane; i < V; i += LANES) {
        highest = max(highest, logits[row + i]);
    }
    highest = reduce_max(highest, lane, 0u);
    var sum = 0.0;
    for (var i = lane; i < V; i += LANES) {
        sum += exp(logits[row + i] - highest);
    }
    sum = reduce_sum(sum, lane, 0u);
    if (lane == 0u) {
        scores[workgroup.x * SCORES] = highest;
        scores[workgroup.x * SCORES + 1u] = sum;
    }
    var last = highest;
    var last_id = 0xffffffffu;
    for (var round = 0u; round + 1u < num; round += 1u) {
        var best = -3.0e38;
        var best_id = 0xffffffffu;
        for (var i = lane; i < V; i += LANES) {
            let logit = logits[row + i];
            // Behind the last one; in the first round, whatever there is.
            let is_left = round == 0u || logit < last || (logit == last && i > last_id);
            if (is_left && logit > best) {
                best = logit;
                best_id = i;
            }
        }
        last = reduce_max(best, lane, 0u);
        last_id = reduce_min_u32(select(0xffffffffu, best_id, best == last), lane, 0u);
        if (lane == 0u) {
            ids[workgroup.x * MOST + round] = last_id;
            scores[workgroup.x * SCORES + 3u + round] = last;
        }
    }
}
