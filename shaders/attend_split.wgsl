// Attention of few tokens in one dispatch: rotates queries and keys (see rope_store.wgsl), stores the tokens' keys and
// values in the paged cache, and attends:
//   out[t, h, :] = sum over j of softmax(q[t, h, :] . k[j])[j] * v[j], over j <= position of t and, in sliding-window
//   layers, position - j < WINDOW.
//
// A task is a token, SHARED_HEADS query heads of one key-value head, and one split of the positions, counted from
// the first that the token sees; MOST_SPLITS of them, if they have SPLIT_TOKENS positions at least. Each key and value of the split is read and unpacked once for all of the task's heads.
// What the step itself stores is taken from qkv, because another task writes it in this very dispatch; it is rounded as
// the cache rounds. With one split the result is final; else `out` gets, behind its first rows, a vector for each
// (token, head, split): its highest score and the sum of its weights, then the weighted values. merge_splits.wgsl ends it.
//
// LANES lanes share a task. SLICES of them share a position, each with QUADS quads of a head; a lane takes BATCH (4 or 8)
// positions at a time, LANES / SLICES apart, in columns of matrices whose rows are heads: what a lane finds in an array by
// a variable costs more than the arithmetic behind it. The softmax is online (Milakov and Gimelshein 2018), once a batch.
// A piece says how quads of one to four heads are kept (lib/heads_*.wgsl); numbers of heads that are not there are 0.
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
override MOST_SPLITS: u32;
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
var<private> query: array<HeadQuads, QUADS>;

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

// Quads at which the keys (and values) of the positions begin.
fn bases_of(table: u32, at: vec4<u32>, kv_head: u32) -> vec4<u32> {
    let block = vec4<u32>(
        tables[table + at.x / 16u],
        tables[table + at.y / 16u],
        tables[table + at.z / 16u],
        tables[table + at.w / 16u],
    );
    return ((block * 16u + at % 16u) * KV_HEADS + kv_head) * HEAD_QUADS;
}

// The scores of four positions whose keys begin at quads `bases`, from quad `i` of each.
fn scores_of_four(bases: vec4<u32>, i: u32, queries: HeadQuads) -> mat4x4<f32> {
    return mat4x4<f32>(
        scores(k_quad(bases.x + i), queries),
        scores(k_quad(bases.y + i), queries),
        scores(k_quad(bases.z + i), queries),
        scores(k_quad(bases.w + i), queries),
    );
}

// Quad `i` of the four positions' values, weighted and added up.
fn sum_of_four(bases: vec4<u32>, i: u32, weights: mat4x4<f32>) -> HeadQuads {
    return weighted(v_quad(bases.x + i), weights[0])
        + weighted(v_quad(bases.y + i), weights[1])
        + weighted(v_quad(bases.z + i), weights[2])
        + weighted(v_quad(bases.w + i), weights[3]);
}

// The scores of whole heads, LOWEST at positions that are not before `end`.
fn whole_scores(parts: mat4x4<f32>, at: vec4<u32>, end: u32) -> mat4x4<f32> {
    let lowest = vec4<f32>(LOWEST);
    return mat4x4<f32>(
        select(lowest, reduce_slices4(parts[0], SLICES), at.x < end),
        select(lowest, reduce_slices4(parts[1], SLICES), at.y < end),
        select(lowest, reduce_slices4(parts[2], SLICES), at.z < end),
        select(lowest, reduce_slices4(parts[3], SLICES), at.w < end),
    );
}

fn highest_of(scores: mat4x4<f32>) -> vec4<f32> {
    return max(max(scores[0], scores[1]), max(scores[2], scores[3]));
}

fn total_of(weights: mat4x4<f32>) -> vec4<f32> {
    return weights[0] + weights[1] + weights[2] + weights[3];
}

fn weight(score: vec4<f32>, highest: vec4<f32>) -> vec4<f32> {
    return select(exp(score - highest), vec4<f32>(0.0), score == vec4<f32>(LOWEST));
}

fn weights_of(scores: mat4x4<f32>, highest: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        weight(scores[0], highest), weight(scores[1], highest), weight(scores[2], highest), weight(scores[3], highest));
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
    let span = max(SPLIT_TOKENS, (seen + MOST_SPLITS - 1u) / MOST_SPLITS);
    let num_splits = (seen + span - 1u) / span;
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
    var begin = split * span;
    if (WINDOW > 0u && token.position >= WINDOW) {
        begin += token.position - WINDOW + 1u;
    }
    let end = select(begin, min(begin + span, token.position + 1u), wanted < num_tasks);

    var sum = array<HeadQuads, QUADS>();
    var highest = vec4<f32>(LOWEST);
    var total = vec4<f32>(0.0);

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
        var part = vec4<f32>(0.0);
        for (var i = 0u; i < num_quads; i += 1u) {
            let at = i * SLICES + slice;
            let quad = rotated_quad(base, select(HEAD_DIM, 0u, is_query), scale, position, at);
            if (is_query) {
                query[i] = with_quad(query[i], n, quad * SCALE);
            } else {
                part += scores(as_cached(quad), query[i]);
                if (stores && place == 0u) {
                    store_quad(false, (slot * KV_HEADS + kv_head) * HEAD_DIM + 4u * at, quad);
                    store_quad(true, (slot * KV_HEADS + kv_head) * HEAD_DIM + 4u * at, qkv_quad(v_base + 4u * at));
                }
            }
        }
        if (!is_seen) {
            continue;
        }
        // One of the places takes it.
        let score = select(vec4<f32>(LOWEST), reduce_slices4(part, SLICES), place == other % num_places);
        let raised = max(highest, score);
        let shrink = exp(highest - raised);
        let own = weight(score, raised);
        highest = raised;
        total = total * shrink + own;
        for (var i = 0u; i < num_quads; i += 1u) {
            let value = as_cached(qkv_quad(v_base + 4u * (i * SLICES + slice)));
            sum[i] = scaled(sum[i], shrink) + weighted(value, own);
        }
    }

    for (var start = begin; start < cached_end; start += BATCH * num_places) {
        let at = start + place + num_places * vec4<u32>(0u, 1u, 2u, 3u);
        let later = at + 4u * num_places;
        let bases = bases_of(table, min(at, vec4<u32>(cached_end - 1u)), kv_head) + slice;
        let later_bases = bases_of(table, min(later, vec4<u32>(cached_end - 1u)), kv_head) + slice;
        var parts = mat4x4<f32>();
        var later_parts = mat4x4<f32>();
        for (var i = 0u; i < num_quads; i += 1u) {
            let queries = query[i];
            parts += scores_of_four(bases, i * SLICES, queries);
            if (BATCH == 8u) {
                later_parts += scores_of_four(later_bases, i * SLICES, queries);
            }
        }
        let scores = whole_scores(parts, at, cached_end);
        var raised = max(highest, highest_of(scores));
        var later_scores = mat4x4<f32>();
        if (BATCH == 8u) {
            later_scores = whole_scores(later_parts, later, cached_end);
            raised = max(raised, highest_of(later_scores));
        }
        let shrink = exp(highest - raised);
        highest = raised;
        let weights = weights_of(scores, raised);
        let later_weights = weights_of(later_scores, raised);
        total = total * shrink + total_of(weights);
        if (BATCH == 8u) {
            total += total_of(later_weights);
        }
        for (var i = 0u; i < num_quads; i += 1u) {
            var added = scaled(sum[i], shrink) + sum_of_four(bases, i * SLICES, weights);
            if (BATCH == 8u) {
                added += sum_of_four(later_bases, i * SLICES, later_weights);
            }
            sum[i] = added;
        }
    }

    let overall = reduce_max4(highest, lane, local.y);
    let shrink = exp(highest - overall);
    // Lanes that share a position have counted it SLICES times.
    let all = reduce_sum4(total * shrink, lane, local.y) / f32(SLICES);
    for (var head = 0u; head < SHARED_HEADS; head += 1u) {
        let row = t * HEADS + first_head + head;
        var at = row * HEAD_QUADS;
        var scale = 1.0 / all[head];
        if (num_splits > 1u) {
            at = PARTIALS + (row * num_splits + split) * (HEAD_QUADS + 1u);
            scale = 1.0;
            if (lane == 0u && wanted < num_tasks) {
                out[at] = vec4<f32>(overall[head], all[head], 0.0, 0.0);
            }
            at += 1u;
        }
        for (var i = 0u; i < num_quads; i += 1u) {
            let merged = reduce_places4(quad_of(sum[i], head) * shrink[head], SLICES, lane, local.y);
            if (place == 0u && wanted < num_tasks) {
                out[at + i * SLICES + slice] = merged * scale;
            }
        }
    }
}
