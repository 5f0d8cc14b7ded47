// The same as attention.wgsl, for many tokens on GPUs (flash attention: Dao et al. 2022): a workgroup takes QUERIES queries
// of one key-value head and walks the positions in tiles of TILE. Keys, then values of a tile lie in workgroup memory, as
// words, so that each is read once for all queries; so do the queries and the tile's scores. Sums stay in registers.
//
// Queries of a key-value head are numbered token by token, H / KV_HEADS heads each. A workgroup takes neighbours, run by
// run of tokens of one sequence, which follow each other. An invocation computes the scores of one position of a tile with
// up to SCORES queries, and one quad of the result for up to SUMS queries. Grid: x = ceil(T * H / KV_HEADS / QUERIES), y = KV_HEADS.

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Token { id: u32, position: u32, sequence: u32, slot0: u32, slot1: u32 }

// const HEAD_QUADS, QUERIES, TILE, ROW_WORDS, SCORES, SUMS: u32 come from the header line: they size arrays.
override HEADS: u32;
override KV_HEADS: u32;
override WINDOW: u32; // 0: none
override TABLE_OFFSET: u32; // where the layer group's tables begin
override TABLE_STRIDE: u32; // entries of one sequence's table
override KV_F16: bool;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>; // [T, H, HEAD_QUADS]
@group(0) @binding(1) var<storage, read> k_cache: array<u32>; // [slots, KV_HEADS, 4 * HEAD_QUADS] f32 or f16 pairs
@group(0) @binding(2) var<storage, read> v_cache: array<u32>; // [slots, KV_HEADS, 4 * HEAD_QUADS] f32 or f16 pairs
@group(0) @binding(3) var<storage, read> tokens: array<Token>; // [T]
@group(0) @binding(4) var<storage, read> tables: array<u32>; // [groups, S, TABLE_STRIDE]
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>; // [T, H, HEAD_QUADS]
@group(0) @binding(6) var<uniform> step: Step;

const LOWEST: f32 = -3.0e38;
const WIDTH: u32 = 128;
// A row's stride in the tile is odd, so that neighbouring rows lie in different banks.
const STRIDE: u32 = ROW_WORDS + 1u;
// Queries that an invocation's scores, and its sums, are apart.
const SCORE_STEP: u32 = WIDTH / TILE;
const SUM_STEP: u32 = WIDTH / HEAD_QUADS;

var<workgroup> queries: array<vec4<f32>, QUERIES * HEAD_QUADS>;
var<workgroup> tile: array<u32, TILE * STRIDE>;
var<workgroup> scores: array<f32, QUERIES * TILE>;
var<workgroup> highest: array<f32, QUERIES>;
var<workgroup> total: array<f32, QUERIES>;
var<workgroup> shrink: array<f32, QUERIES>;

// Quad i of row r of the tile.
fn tile_quad(r: u32, i: u32) -> vec4<f32> {
    if (KV_F16) {
        let at = r * STRIDE + 2u * i;
        return vec4<f32>(unpack2x16float(tile[at]), unpack2x16float(tile[at + 1u]));
    }
    let at = r * STRIDE + 4u * i;
    return bitcast<vec4<f32>>(vec4<u32>(tile[at], tile[at + 1u], tile[at + 2u], tile[at + 3u]));
}

// The first word of position j in a cache.
fn row_word(table: u32, j: u32, kv_head: u32) -> u32 {
    return ((tables[table + j / 16u] * 16u + j % 16u) * KV_HEADS + kv_head) * ROW_WORDS;
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(local_invocation_index) index: u32, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let shared_heads = HEADS / KV_HEADS;
    let kv_head = workgroup.y;
    let first_query = workgroup.x * QUERIES;
    let num_queries = min(QUERIES, step.num_tokens * shared_heads - first_query);
    let end_token = (first_query + num_queries - 1u) / shared_heads + 1u;

    for (var at = index; at < QUERIES * HEAD_QUADS; at += WIDTH) {
        let n = first_query + min(at / HEAD_QUADS, num_queries - 1u);
        let row = n / shared_heads * HEADS + kv_head * shared_heads + n % shared_heads;
        queries[at] = q[row * HEAD_QUADS + at % HEAD_QUADS];
    }
    if (index < QUERIES) {
        highest[index] = LOWEST;
        total[index] = 0.0;
    }
    var sum = array<vec4<f32>, SUMS>();

    var t = first_query / shared_heads;
    while (t < end_token) {
        let run = t;
        let sequence = tokens[t].sequence;
        while (t < end_token && tokens[t].sequence == sequence) {
            t += 1u;
        }
        let table = TABLE_OFFSET + sequence * TABLE_STRIDE;
        var begin = 0u;
        if (WINDOW > 0u && tokens[run].position >= WINDOW) {
            begin = tokens[run].position - WINDOW + 1u;
        }
        let end = tokens[t - 1u].position + 1u;
        for (var start = begin; start < end; start += TILE) {
            workgroupBarrier();
            for (var at = index; at < TILE * ROW_WORDS; at += WIDTH) {
                let row = row_word(table, min(start + at / ROW_WORDS, end - 1u), kv_head);
                tile[at / ROW_WORDS * STRIDE + at % ROW_WORDS] = k_cache[row + at % ROW_WORDS];
            }
            workgroupBarrier();
            var products = array<f32, SCORES>();
            for (var i = 0u; i < HEAD_QUADS; i += 1u) {
                let key = tile_quad(index % TILE, i);
                for (var s = 0u; s < SCORES; s += 1u) {
                    let n = min(index / TILE + s * SCORE_STEP, QUERIES - 1u);
                    products[s] += dot(queries[n * HEAD_QUADS + i], key);
                }
            }
            let j = start + index % TILE;
            for (var s = 0u; s < SCORES; s += 1u) {
                let n = index / TILE + s * SCORE_STEP;
                if (n < QUERIES) {
                    let own = (first_query + min(n, num_queries - 1u)) / shared_heads;
                    let position = tokens[own].position;
                    // What a query does not see weighs nothing: of another sequence, later, or before its window.
                    let is_seen = own >= run && own < t && j <= position && (WINDOW == 0u || position - j < WINDOW);
                    scores[n * TILE + index % TILE] = select(LOWEST, products[s], is_seen);
                }
            }
            workgroupBarrier();
            if (index < QUERIES) {
                let base = index * TILE;
                var raised = highest[index];
                for (var at = base; at < base + TILE; at += 1u) {
                    raised = max(raised, scores[at]);
                }
                let factor = exp(highest[index] - raised);
                var weights = 0.0;
                for (var at = base; at < base + TILE; at += 1u) {
                    let weight = select(exp(scores[at] - raised), 0.0, scores[at] == LOWEST);
                    scores[at] = weight;
                    weights += weight;
                }
                highest[index] = raised;
                total[index] = total[index] * factor + weights;
                shrink[index] = factor;
            }
            for (var at = index; at < TILE * ROW_WORDS; at += WIDTH) {
                let row = row_word(table, min(start + at / ROW_WORDS, end - 1u), kv_head);
                tile[at / ROW_WORDS * STRIDE + at % ROW_WORDS] = v_cache[row + at % ROW_WORDS];
            }
            workgroupBarrier();
            for (var s = 0u; s < SUMS; s += 1u) {
                sum[s] *= shrink[min(index / HEAD_QUADS + s * SUM_STEP, QUERIES - 1u)];
            }
            for (var r = 0u; r < TILE; r += 1u) {
                let value = tile_quad(r, index % HEAD_QUADS);
                for (var s = 0u; s < SUMS; s += 1u) {
                    sum[s] += scores[min(index / HEAD_QUADS + s * SUM_STEP, QUERIES - 1u) * TILE + r] * value;
                }
            }
        }
    }
    workgroupBarrier();
    for (var s = 0u; s < SUMS; s += 1u) {
        let own = index / HEAD_QUADS + s * SUM_STEP;
        if (index < SUM_STEP * HEAD_QUADS && own < num_queries) {
            let n = first_query + own;
            let row = n / shared_heads * HEADS + kv_head * shared_heads + n % shared_heads;
            out[row * HEAD_QUADS + index % HEAD_QUADS] = sum[s] / total[own];
        }
    }
}
