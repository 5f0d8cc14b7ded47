// Attention of few tokens in one dispatch: rotates queries and keys (see rope_store.wgsl), stores the tokens' keys and
// values in the paged cache, and attends:
//   out[t, h, :] = sum over j of softmax(q[t, h, :] . k[j])[j] * v[j], over j <= position of t and, in sliding-window
//   layers, position - j < WINDOW.
//
// A task is a token, SHARED_HEADS query heads of one key-value head, and one split of SPLIT_TOKENS positions, counted from
// the first that the token sees: each key and value of the split is read and unpacked once for all of the task's heads.
// What the step itself stores is taken from qkv, because another task writes it in this very dispatch; it is rounded as
// the cache rounds. With one split the result is final; else `out` gets, behind its first rows, a vector for each
// (token, head, split): its highest score and the sum of its weights, then the weighted values. merge_splits.wgsl ends it.
//
// LANES lanes share a task. SLICES of them share a position, each with QUADS quads of a head; a lane takes BATCH positions
// at a time, LANES / SLICES apart. The softmax is online (Milakov and Gimelshein 2018), once a batch.
// GROUPS tasks a workgroup, 1 where lanes share one. Grid: x = ceil(T * H / SHARED_HEADS * splits / GROUPS).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32, longest: u32 }
struct Token { id: u32, position: u32, sequence: u32, slot0: u32, slot1: u32 }

// const QUADS, SLICES, SHARED_HEADS, BATCH: u32 come from the header line: they size private arrays.
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override ROPE_DIM: u32;
override NEOX: bool;
override QK_NORM: bool;
override EPSILON: f32;
override SCALE: f32;
override KV_F16: bool;
override KV_GROUP: u32;
override WINDOW: u32; // 0: none
override TABLE_OFFSET: u32; // where the layer group's tables begin
override TABLE_STRIDE: u32; // entries of one sequence's table
override SPLIT_TOKENS: u32;
override PARTIALS: u32; // vector of `out` where partial results begin
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [T, (H + 2 KV_HEADS) * HEAD_DIM] f32
@group(0) @binding(1) var<storage, read> angles: array<vec2<f32>>; // [positions, ROPE_DIM / 2] cos, sin
@group(0) @binding(2) var<storage, read> norms: array<f32>; // [2, HEAD_DIM] for q, for k; unused without QK_NORM
@group(0) @binding(3) var<storage, read> tokens: array<Token>; // [T]
@group(0) @binding(4) var<storage, read> tables: array<u32>; // [groups, S, TABLE_STRIDE]
@group(0) @binding(5) var<storage, read_write> k_cache: array<u32>; // [slots, KV_HEADS * HEAD_DIM] f32 or f16 pairs
@group(0) @binding(6) var<storage, read_write> v_cache: array<u32>; // [slots, KV_HEADS * HEAD_DIM] f32 or f16 pairs
@group(0) @binding(7) var<storage, read_write> out: array<vec4<f32>>; // [T, H, HEAD_DIM / 4], then the partial results
@group(0) @binding(8) var<uniform> step: Step;

const LOWEST: f32 = -3.0e38;
const HEAD_QUADS: u32 = QUADS * SLICES;

// In module scope: WGSL allows 8 KiB there, and as much again in the function.
var<private> query: array<vec4<f32>, SHARED_HEADS * QUADS>;

fn k_quad(i: u32) -> vec4<f32> {
    if (KV_F16) {
        return vec4<f32>(unpack2x16float(k_cache[2u * i]), unpack2x16float(k_cache[2u * i + 1u]));
    }
    return bitcast<vec4<f32>>(vec4<u32>(k_cache[4u * i], k_cache[4u * i + 1u], k_cache[4u * i + 2u], k_cache[4u * i + 3u]));
}

fn v_quad(i: u32) -> vec4<f32> {
    if (KV_F16) {
        return vec4<f32>(unpack2x16float(v_cache[2u * i]), unpack2x16float(v_cache[2u * i + 1u]));
    }
    return bitcast<vec4<f32>>(vec4<u32>(v_cache[4u * i], v_cache[4u * i + 1u], v_cache[4u * i + 2u], v_cache[4u * i + 3u]));
}

// 1 / the root mean square of the head that begins at `base`.
fn inverse_rms(base: u32, lane: u32, group: u32) -> f32 {
    var squares = 0.0;
    for (var i = lane; i < HEAD_DIM; i += LANES) {
        squares += qkv[base + i] * qkv[base + i];
    }
    return 1.0 / sqrt(reduce_sum(squares, lane, group) / f32(HEAD_DIM) + EPSILON);
}

// Quad i of a head of q or k, normalised and rotated.
fn rotated_quad(base: u32, norm: u32, scale: f32, position: u32, i: u32) -> vec4<f32> {
    return vec4<f32>(
        rotated(base, norm, scale, position, 4u * i),
        rotated(base, norm, scale, position, 4u * i + 1u),
        rotated(base, norm, scale, position, 4u * i + 2u),
        rotated(base, norm, scale, position, 4u * i + 3u),
    );
}

fn qkv_quad(at: u32) -> vec4<f32> {
    return vec4<f32>(qkv[at], qkv[at + 1u], qkv[at + 2u], qkv[at + 3u]);
}

// A quad as the cache would give it back.
fn as_cached(quad: vec4<f32>) -> vec4<f32> {
    if (KV_F16) {
        return vec4<f32>(unpack2x16float(half_pair(quad.xy)), unpack2x16float(half_pair(quad.zw)));
    }
    return quad;
}

// Stores a quad of a key or a value at value `at` of its cache.
fn store_quad(is_value: bool, at: u32, quad: vec4<f32>) {
    store(is_value, at, quad.xy);
    store(is_value, at + 2u, quad.zw);
}

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let lane = local.x;
    let slice = lane % SLICES;
    let place = lane / SLICES;
    let num_places = LANES / SLICES;
    let num_heads = HEADS + 2u * KV_HEADS;
    var seen = max(step.longest, 1u);
    if (WINDOW > 0u) {
        seen = min(seen, WINDOW);
    }
    let num_splits = (seen + SPLIT_TOKENS - 1u) / SPLIT_TOKENS;
    let num_tasks = step.num_tokens * (HEADS / SHARED_HEADS) * num_splits;
    // Lanes behind the last task repeat it, without positions, and store nothing: all lanes meet the same barriers.
    let wanted = task_of(workgroup.x, local.y);
    let task = min(wanted, num_tasks - 1u);
    let split = task % num_splits;
    let first_head = task / num_splits % (HEADS / SHARED_HEADS) * SHARED_HEADS;
    let kv_head = first_head / (HEADS / KV_HEADS);
    let t = task / num_splits / (HEADS / SHARED_HEADS);
    let token = tokens[t];
    // QUADS, but compilers do not know: unrolling loops over a head takes them seconds and gains nothing. Not from `step`:
    // lavapipe makes what loops take from uniforms a constant, and compiles again in every step.
    let num_quads = select(QUADS, 0u, token.sequence == 0xffffffffu);
    let table = TABLE_OFFSET + token.sequence * TABLE_STRIDE;
    var begin = split * SPLIT_TOKENS;
    if (WINDOW > 0u && token.position >= WINDOW) {
        begin += token.position - WINDOW + 1u;
    }
    let end = select(begin, min(begin + SPLIT_TOKENS, token.position + 1u), wanted < num_tasks);

    var sum = array<vec4<f32>, SHARED_HEADS * QUADS>();
    var highest = array<f32, SHARED_HEADS>();
    var total = array<f32, SHARED_HEADS>();
    for (var head = 0u; head < SHARED_HEADS; head += 1u) {
        highest[head] = LOWEST;
    }

    // First the queries, then the keys of the step's tokens: in one loop, because rotating is much to compile.
    var cached_end = end;
    for (var n = 0u; n < SHARED_HEADS + step.num_tokens; n += 1u) {
        let is_query = n < SHARED_HEADS;
        let other = select(n - SHARED_HEADS, t, is_query);
        let base = (other * num_heads + select(HEADS + kv_head, first_head + n, is_query)) * HEAD_DIM;
        let v_base = base + KV_HEADS * HEAD_DIM;
        var scale = 1.0;
        if (QK_NORM) {
            scale = inverse_rms(base, lane, local.y);
        }
        let position = tokens[other].position;
        let is_cached_no_more = !is_query && tokens[other].sequence == token.sequence && position < end;
        let is_seen = is_cached_no_more && position >= begin;
        cached_end = select(cached_end, min(cached_end, position), is_cached_no_more);
        // The first task of a key-value head and a token stores its key and value.
        let stores = !is_query && other == t && split == 0u && wanted < num_tasks && first_head % (HEADS / KV_HEADS) == 0u;
        if (!is_query && !is_seen && !stores) {
            continue;
        }
        let slot = select(tokens[other].slot1, tokens[other].slot0, KV_GROUP == 0u);
        var scores = array<f32, SHARED_HEADS>();
        for (var i = 0u; i < num_quads; i += 1u) {
            let at = i * SLICES + slice;
            let quad = rotated_quad(base, select(HEAD_DIM, 0u, is_query), scale, position, at);
            if (is_query) {
                query[n * QUADS + i] = quad * SCALE;
            } else {
                let key = as_cached(quad);
                for (var head = 0u; head < SHARED_HEADS; head += 1u) {
                    scores[head] += dot(query[head * QUADS + i], key);
                }
                if (stores && place == 0u) {
                    store_quad(false, (slot * KV_HEADS + kv_head) * HEAD_DIM + 4u * at, quad);
                    store_quad(true, (slot * KV_HEADS + kv_head) * HEAD_DIM + 4u * at, qkv_quad(v_base + 4u * at));
                }
            }
        }
        if (!is_seen) {
            continue;
        }
        var shrink = array<f32, SHARED_HEADS>();
        for (var head = 0u; head < SHARED_HEADS; head += 1u) {
            // One of the places takes it.
            let score = select(LOWEST, reduce_slices(scores[head], SLICES), place == other % num_places);
            let raised = max(highest[head], score);
            shrink[head] = exp(highest[head] - raised);
            highest[head] = raised;
            scores[head] = select(exp(score - raised), 0.0, score == LOWEST);
            total[head] = total[head] * shrink[head] + scores[head];
        }
        for (var i = 0u; i < num_quads; i += 1u) {
            let value = as_cached(qkv_quad(v_base + 4u * (i * SLICES + slice)));
            for (var head = 0u; head < SHARED_HEADS; head += 1u) {
                sum[head * QUADS + i] = sum[head * QUADS + i] * shrink[head] + scores[head] * value;
            }
        }
    }

    for (var start = begin; start < cached_end; start += BATCH * num_places) {
        var bases = array<u32, BATCH>();
        var scores = array<f32, BATCH * SHARED_HEADS>();
        for (var n = 0u; n < BATCH; n += 1u) {
            let j = min(start + n * num_places + place, cached_end - 1u);
            let slot = tables[table + j / 16u] * 16u + j % 16u;
            bases[n] = (slot * KV_HEADS + kv_head) * HEAD_QUADS + slice;
        }
        for (var i = 0u; i < num_quads; i += 1u) {
            for (var n = 0u; n < BATCH; n += 1u) {
                let key = k_quad(bases[n] + i * SLICES);
                for (var head = 0u; head < SHARED_HEADS; head += 1u) {
                    scores[n * SHARED_HEADS + head] += dot(query[head * QUADS + i], key);
                }
            }
        }
        var shrink = array<f32, SHARED_HEADS>();
        for (var head = 0u; head < SHARED_HEADS; head += 1u) {
            var raised = highest[head];
            for (var n = 0u; n < BATCH; n += 1u) {
                let score = reduce_slices(scores[n * SHARED_HEADS + head], SLICES);
                // What lies behind the end weighs nothing.
                scores[n * SHARED_HEADS + head] = select(LOWEST, score, start + n * num_places + place < cached_end);
                raised = max(raised, scores[n * SHARED_HEADS + head]);
            }
            shrink[head] = exp(highest[head] - raised);
            highest[head] = raised;
            total[head] *= shrink[head];
            for (var n = 0u; n < BATCH; n += 1u) {
                let score = scores[n * SHARED_HEADS + head];
                let weight = select(exp(score - raised), 0.0, score == LOWEST);
                scores[n * SHARED_HEADS + head] = weight;
                total[head] += weight;
            }
        }
        for (var i = 0u; i < num_quads; i += 1u) {
            for (var head = 0u; head < SHARED_HEADS; head += 1u) {
                sum[head * QUADS + i] *= shrink[head];
            }
            for (var n = 0u; n < BATCH; n += 1u) {
                let value = v_quad(bases[n] + i * SLICES);
                for (var head = 0u; head < SHARED_HEADS; head += 1u) {
                    sum[head * QUADS + i] += scores[n * SHARED_HEADS + head] * value;
                }
            }
        }
    }

    for (var head = 0u; head < SHARED_HEADS; head += 1u) {
        let row = t * HEADS + first_head + head;
        let overall = reduce_max(highest[head], lane, local.y);
        let shrink = exp(highest[head] - overall);
        // Lanes that share a position have counted it SLICES times.
        let all = reduce_sum(total[head] * shrink, lane, local.y) / f32(SLICES);
        var at = row * HEAD_QUADS;
        var scale = 1.0 / all;
        if (num_splits > 1u) {
            at = PARTIALS + (row * num_splits + split) * (HEAD_QUADS + 1u);
            scale = 1.0;
            if (lane == 0u && wanted < num_tasks) {
                out[at] = vec4<f32>(overall, all, 0.0, 0.0);
            }
            at += 1u;
        }
        for (var i = 0u; i < num_quads; i += 1u) {
            let merged = reduce_places4(sum[head * QUADS + i] * shrink, SLICES, lane, local.y);
            if (place == 0u && wanted < num_tasks) {
                out[at + i * SLICES + slice] = merged * scale;
            }
        }
    }
}
