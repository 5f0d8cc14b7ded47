// Draws one token from a row of logits.
//
// Greedy rows (temperature 0) take the largest logit, the smallest id among equals. Others scale logits by the
// temperature and keep the tokens that pass top-k, then top-p (of what top-k kept), and min-p, all of which come down
// to one lowest logit: its bits, in the order of floats, are found two in a pass, 16 passes each. The draw adds Gumbel
// noise to the kept logits and takes the largest (Gumbel 1954), which is a draw from their softmax. The noise of a
// token depends on seed, counter and id alone (Threefry-2x32, Salmon et al. 2011), not on the order of evaluation.
// A row with a logit that is not finite yields 0xffffffff: nothing may be drawn from it.
//
// A row may have a mask, a bit per token. Logits of tokens without theirs become FORBIDDEN in the first pass, whatever
// biases made of them, and nothing that low is ever kept. A lane meets the same tokens in every pass, so it sees its own.
//
// LANES lanes share a row; a workgroup does one row. Grid: x = R.

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
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
    mask: u32, // 0: none; else the number of the mask, from 1 on
}

const FORBIDDEN = -3.0e38;
const LOWEST_ALLOWED = -1.0e38;

override V: u32;
override LANES: u32;
override GROUPS: u32; // 1

@group(0) @binding(0) var<storage, read_write> logits: array<f32>; // [R, V] f32
@group(0) @binding(1) var<storage, read> samplings: array<Sampling>; // [R]
@group(0) @binding(2) var<storage, read> masks: array<u32>; // [R, ceil(V / 32)]
@group(0) @binding(3) var<storage, read_write> ids: array<u32>; // [R]
@group(0) @binding(4) var<uniform> step: Step;

// Whether a mask allows a token.
fn is_allowed(mask: u32, token: u32) -> bool {
    return ((masks[(mask - 1u) * ((V + 31u) / 32u) + token / 32u] >> (token % 32u)) & 1u) != 0u;
}

// Floats in the order of their values, as unsigned numbers.
fn order_of(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn rotate_left(value: u32, count: u32) -> u32 {
    return (value << count) | (value >> (32u - count));
}

fn mix(state: vec2<u32>, count: u32) -> vec2<u32> {
    let sum = state.x + state.y;
    return vec2<u32>(sum, rotate_left(state.y, count) ^ sum);
}

// Threefry-2x32 with 20 rounds: the first word of the block `counter` under `key`.
fn threefry(key: vec2<u32>, counter: vec2<u32>) -> u32 {
    let keys = vec3<u32>(key, 0x1BD11BDAu ^ key.x ^ key.y);
    var state = counter + keys.xy;
    state = mix(mix(mix(mix(state, 13u), 15u), 26u), 6u) + vec2<u32>(keys.y, keys.z + 1u);
    state = mix(mix(mix(mix(state, 17u), 29u), 16u), 24u) + vec2<u32>(keys.z, keys.x + 2u);
    state = mix(mix(mix(mix(state, 13u), 15u), 26u), 6u) + vec2<u32>(keys.x, keys.y + 3u);
    state = mix(mix(mix(mix(state, 17u), 29u), 16u), 24u) + vec2<u32>(keys.y, keys.z + 4u);
    state = mix(mix(mix(mix(state, 13u), 15u), 26u), 6u) + vec2<u32>(keys.z, keys.x + 5u);
    return state.x;
}

fn gumbel(sampling: Sampling, token: u32) -> f32 {
    let bits = threefry(vec2<u32>(sampling.seed_low, sampling.seed_high), vec2<u32>(sampling.counter, token));
    let uniform_draw = (f32(bits >> 9u) + 0.5) / 8388608.0; // exact, strictly between 0 and 1
    return -log(-log(uniform_draw));
}

// How many tokens have an order of at least `lowest`, for each of four.
fn count_from(row: u32, lowest: vec4<u32>, lane: u32) -> vec4<f32> {
    var count = vec4<u32>(0u);
    for (var i = lane; i < V; i += LANES) {
        count += select(vec4<u32>(0u), vec4<u32>(1u), vec4<u32>(order_of(logits[row + i])) >= lowest);
    }
    return reduce_sum4(vec4<f32>(count), lane, 0u);
}

// The mass, relative to the most probable token's, of the tokens with an order of at least `lowest`, for each of four.
fn mass_from(row: u32, lowest: vec4<u32>, highest: f32, temperature: f32, lane: u32) -> vec4<f32> {
    var mass = vec4<f32>(0.0);
    for (var i = lane; i < V; i += LANES) {
        let logit = logits[row + i];
        let weight = exp((logit - highest) / temperature);
        mass += select(vec4<f32>(0.0), vec4<f32>(weight), vec4<u32>(order_of(logit)) >= lowest);
    }
    return reduce_sum4(mass, lane, 0u);
}

// The four ways to go on with a number whose bits from `shift` + 2 on are known.
fn with_digit(number: u32, shift: u32) -> vec4<u32> {
    return vec4<u32>(number) | (vec4<u32>(0u, 1u, 2u, 3u) << vec4<u32>(shift));
}

// The highest digit that keeps at least `wanted` of what `kept` has for each: less and less.
fn highest_digit(kept: vec4<f32>, wanted: f32) -> u32 {
    return dot(select(vec3<u32>(0u), vec3<u32>(1u), kept.yzw >= vec3<f32>(wanted)), vec3<u32>(1u));
}

// The order of the lowest logit that is kept.
fn lowest_kept(row: u32, sampling: Sampling, highest: f32, lane: u32) -> u32 {
    var lowest = 0u;
    if (sampling.top_k > 0u && sampling.top_k < V) {
        for (var digit = 0u; digit < 16u; digit += 1u) {
            let shift = 30u - 2u * digit;
            let kept = count_from(row, with_digit(lowest, shift), lane);
            lowest |= highest_digit(kept, f32(sampling.top_k)) << shift;
        }
    }
    lowest = max(lowest, order_of(LOWEST_ALLOWED));
    if (sampling.top_p < 1.0) {
        let wanted = sampling.top_p * mass_from(row, vec4<u32>(lowest), highest, sampling.temperature, lane).x;
        var threshold = 0u;
        for (var digit = 0u; digit < 16u; digit += 1u) {
            let shift = 30u - 2u * digit;
            let candidates = max(with_digit(threshold, shift), vec4<u32>(lowest));
            let kept = mass_from(row, candidates, highest, sampling.temperature, lane);
            threshold |= highest_digit(kept, wanted) << shift;
        }
        // The most probable token always stays, whatever rounding makes of its mass.
        lowest = max(lowest, min(threshold, order_of(highest)));
    }
    if (sampling.min_p > 0.0) {
        lowest = max(lowest, order_of(highest + sampling.temperature * log(sampling.min_p)));
    }
    return lowest;
}

@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let lane = local.x;
    let row = workgroup.x * V;
    let sampling = samplings[workgroup.x];

    var highest = -3.0e38;
    var num_broken = 0.0;
    for (var i = lane; i < V; i += LANES) {
        var logit = logits[row + i];
        // By bits: a compiler may assume that comparisons never meet a NaN.
        num_broken += select(0.0, 1.0, (bitcast<u32>(logit) & 0x7f800000u) == 0x7f800000u);
        if (sampling.mask > 0u && !is_allowed(sampling.mask, i)) {
            logit = FORBIDDEN;
            logits[row + i] = logit;
        }
        highest = max(highest, logit);
    }
    highest = reduce_max(highest, lane, 0u);
    num_broken = reduce_sum(num_broken, lane, 0u);

    var best = -3.0e38;
    var best_id = 0xffffffffu;
    if (sampling.temperature == 0.0) {
        best = highest;
        for (var i = lane; i < V; i += LANES) {
            if (logits[row + i] == highest) {
                best_id = min(best_id, i);
            }
        }
    } else {
        let lowest = lowest_kept(row, sampling, highest, lane);
        for (var i = lane; i < V; i += LANES) {
            let logit = logits[row + i];
            if (order_of(logit) >= lowest) {
                let value = (logit - highest) / sampling.temperature + gumbel(sampling, i);
                if (value > best) {
                    best = value;
                    best_id = i;
                }
            }
        }
    }
    let winner = reduce_max(best, lane, 0u);
    let id = reduce_min_u32(select(0xffffffffu, best_id, best == winner), lane, 0u);
    if (lane == 0u) {
        ids[workgroup.x] = select(id, 0xffffffffu, num_broken > 0.0);
    }
}
