// out[t, h, :] = sum over j of softmax(q[t, h, :] . k[j])[j] * v[j], over the cached positions j of t's sequence with
// j <= position of t and, in sliding-window layers, position - j < WINDOW. Scores are scaled in q already.
//
// Positions are found through the sequence's block table: slot = table[j / 16] * 16 + j % 16. The softmax is online
// (Milakov and Gimelshein 2018): each lane keeps a running maximum, sum and weighted value over every LANES-th
// position, and the lanes' results are merged at the end.
// LANES lanes share a (token, head), GROUPS of them a workgroup. Grid: x = ceil(T * H / GROUPS).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Token { id: u32, position: u32, sequence: u32, slot0: u32, slot1: u32 }

// const HEAD_QUADS: u32 comes from the header line: it sizes private arrays.
override HEADS: u32;
override KV_HEADS: u32;
override WINDOW: u32; // 0: none
override TABLE_OFFSET: u32; // where the layer group's tables begin
override TABLE_STRIDE: u32; // entries of one sequence's table
override KV_F16: bool;
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [T, H, HEAD_QUADS]
@group(0) @binding(1) var<storage, read> k_cache: array<u32>; // [slots, KV_HEADS, 4 * HEAD_QUADS] f32 or f16 pairs
@group(0) @binding(2) var<storage, read> v_cache: array<u32>; // [slots, KV_HEADS, 4 * HEAD_QUADS] f32 or f16 pairs
@group(0) @binding(3) var<storage, read> tokens: array<Token>; // [T]
@group(0) @binding(4) var<storage, read> tables: array<u32>; // [groups, S, TABLE_STRIDE]
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [T, H, HEAD_QUADS]
@group(0) @binding(6) var<uniform> step: Step;

const LOWEST: f32 = -3.0e38;

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

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let task = workgroup.x * GROUPS + local.y;
    let num_tasks = step.num_tokens * HEADS;
    // Lanes behind the last head repeat it and store nothing: all lanes meet the same barriers.
    let row = min(task, num_tasks - 1u);
    let token = tokens[row / HEADS];
    // HEAD_QUADS, but compilers do not know; see attend_split.wgsl.
    let num_quads = select(HEAD_QUADS, 0u, token.sequence == 0xffffffffu);
    let kv_head = (row % HEADS) / (HEADS / KV_HEADS);
    let table = TABLE_OFFSET + token.sequence * TABLE_STRIDE;
    var first = 0u;
    if (WINDOW > 0u && token.position >= WINDOW) {
        first = token.position - WINDOW + 1u;
    }

    var query = array<vec4<f32>, HEAD_QUADS>();
    var sum = array<vec4<f32>, HEAD_QUADS>();
    for (var i = 0u; i < num_quads; i += 1u) {
        query[i] = q[row * HEAD_QUADS + i];
        sum[i] = vec4<f32>(0.0);
    }
    var highest = LOWEST;
    var total = 0.0;
    for (var j = first + local.x; j <= token.position; j += LANES) {
        let slot = tables[table + j / 16u] * 16u + j % 16u;
        let base = (slot * KV_HEADS + kv_head) * HEAD_QUADS;
        var products = vec4<f32>(0.0);
        for (var i = 0u; i < num_quads; i += 1u) {
            products += query[i] * k_quad(base + i);
        }
        let score = products.x + products.y + products.z + products.w;
        if (score > highest) {
            let shrink = exp(highest - score);
            highest = score;
            total *= shrink;
            for (var i = 0u; i < num_quads; i += 1u) {
                sum[i] *= shrink;
            }
        }
        let weight = exp(score - highest);
        total += weight;
        for (var i = 0u; i < num_quads; i += 1u) {
            sum[i] += weight * v_quad(base + i);
        }
    }

    let overall = reduce_max(highest, local.x, local.y);
    let shrink = exp(highest - overall);
    let scale = 1.0 / reduce_sum(total * shrink, local.x, local.y);
    for (var i = 0u; i < HEAD_QUADS; i += 1u) {
        let merged = reduce_sum4(sum[i] * shrink, local.x, local.y);
        if (local.x == 0u && task < num_tasks) {
            out[row * HEAD_QUADS + i] = merged * scale;
        }
    }
}
