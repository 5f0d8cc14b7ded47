// The same as attention.wgsl, for many tokens on adapters that compute on the CPU: the lanes of a workgroup are queries of
// one key-value head and walk the positions together. Compilers see that they read the same keys and values, which are read
// and unpacked once for all of them. Eight positions at a time, in vectors and not in arrays: what is found by a variable in
// private memory costs these adapters more than arithmetic. Two quads at a time: lavapipe ends what goes around more than
// 65,535 times. There are no barriers.
//
// Queries of a key-value head are numbered token by token, H / KV_HEADS heads each. A workgroup takes WIDTH neighbours, run
// by run of tokens of one sequence, which follow each other. Grid: x = ceil(T * H / KV_HEADS / WIDTH), y = KV_HEADS.

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Token { id: u32, position: u32, sequence: u32, slot0: u32, slot1: u32 }

// const HEAD_QUADS: u32 comes from the header line: it sizes a private array.
override HEADS: u32;
override KV_HEADS: u32;
override WINDOW: u32; // 0: none
override TABLE_OFFSET: u32; // where the layer group's tables begin
override TABLE_STRIDE: u32; // entries of one sequence's table
override KV_F16: bool;
override WIDTH: u32;

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

// Quads at which the keys (and values) of positions j to j + 3 begin, or of the last one.
fn rows(table: u32, j: u32, last: u32, kv_head: u32) -> vec4<u32> {
    let at = min(vec4<u32>(j, j + 1u, j + 2u, j + 3u), vec4<u32>(last));
    let block = vec4<u32>(
        tables[table + at.x / 16u],
        tables[table + at.y / 16u],
        tables[table + at.z / 16u],
        tables[table + at.w / 16u],
    );
    return ((block * 16u + at % 16u) * KV_HEADS + kv_head) * HEAD_QUADS;
}

// Of a query's quad with quad `i` of four keys.
fn products(query: vec4<f32>, rows: vec4<u32>, i: u32) -> vec4<f32> {
    return vec4<f32>(
        dot(query, k_quad(rows.x + i)),
        dot(query, k_quad(rows.y + i)),
        dot(query, k_quad(rows.z + i)),
        dot(query, k_quad(rows.w + i)),
    );
}

// Quad `i` of four values, weighted and added up.
fn values(weights: vec4<f32>, rows: vec4<u32>, i: u32) -> vec4<f32> {
    return weights.x * v_quad(rows.x + i)
        + weights.y * v_quad(rows.y + i)
        + weights.z * v_quad(rows.z + i)
        + weights.w * v_quad(rows.w + i);
}

// What a query at `position` does not see weighs nothing: what comes later, and what its window has left behind.
fn masked(scores: vec4<f32>, j: u32, position: u32) -> vec4<f32> {
    let at = vec4<u32>(j, j + 1u, j + 2u, j + 3u);
    let is_seen = at <= vec4<u32>(position);
    let is_near = vec4<u32>(position) - at < vec4<u32>(select(0xffffffffu, WINDOW, WINDOW > 0u));
    return select(vec4<f32>(LOWEST), scores, is_seen & is_near);
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let shared_heads = HEADS / KV_HEADS;
    let kv_head = workgroup.y;
    let first_query = workgroup.x * WIDTH;
    let end_token = min((first_query + WIDTH - 1u) / shared_heads + 1u, step.num_tokens);
    // Lanes behind the last query repeat it: they write the same.
    let n = min(first_query + local.x, step.num_tokens * shared_heads - 1u);
    let own = n / shared_heads;
    let row = (own * HEADS + kv_head * shared_heads + n % shared_heads) * HEAD_QUADS;
    // HEAD_QUADS, but compilers do not know; see attend_split.wgsl.
    let num_quads = select(HEAD_QUADS, 0u, tokens[0].sequence == 0xffffffffu);

    var sum = array<vec4<f32>, HEAD_QUADS>();
    var highest = LOWEST;
    var total = 0.0;
    var t = first_query / shared_heads;
    while (t < end_token) {
        let run = t;
        let sequence = tokens[t].sequence;
        while (t < end_token && tokens[t].sequence == sequence) {
            t += 1u;
        }
        // Lanes of another sequence see nothing of this one.
        let is_own = own >= run && own < t;
        let position = tokens[own].position;
        let table = TABLE_OFFSET + sequence * TABLE_STRIDE;
        var begin = 0u;
        if (WINDOW > 0u && tokens[run].position >= WINDOW) {
            begin = tokens[run].position - WINDOW + 1u;
        }
        let last = tokens[t - 1u].position;
        for (var j = begin; j <= last; j += 8u) {
            let rows_a = rows(table, j, last, kv_head);
            let rows_b = rows(table, j + 4u, last, kv_head);
            var a = vec4<f32>(0.0);
            var b = vec4<f32>(0.0);
            for (var i = 0u; i < num_quads; i += 2u) {
                let query = q[row + i];
                let next = q[row + i + 1u];
                a += products(query, rows_a, i) + products(next, rows_a, i + 1u);
                b += products(query, rows_b, i) + products(next, rows_b, i + 1u);
            }
            a = select(vec4<f32>(LOWEST), masked(a, j, position), is_own);
            b = select(vec4<f32>(LOWEST), masked(b, j + 4u, position), is_own);
            let most = max(a, b);
            let raised = max(highest, max(max(most.x, most.y), max(most.z, most.w)));
            let shrink = exp(highest - raised);
            highest = raised;
            a = select(exp(a - raised), vec4<f32>(0.0), a == vec4<f32>(LOWEST));
            b = select(exp(b - raised), vec4<f32>(0.0), b == vec4<f32>(LOWEST));
            total = total * shrink + dot(a + b, vec4<f32>(1.0));
            for (var i = 0u; i < num_quads; i += 2u) {
                sum[i] = sum[i] * shrink + values(a, rows_a, i) + values(b, rows_b, i);
                sum[i + 1u] = sum[i + 1u] * shrink + values(a, rows_a, i + 1u) + values(b, rows_b, i + 1u);
            }
        }
    }
    let scale = 1.0 / total;
    for (var i = 0u; i < num_quads; i += 1u) {
        out[row + i] = sum[i] * scale;
    }
}
