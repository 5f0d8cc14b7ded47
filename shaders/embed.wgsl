// x[t, :] = SCALE * E[id of token t, :], for the tokens whose rows are in this part of the embedding.
//
// An id with its highest bit set stands for one that the step before drew, for the row in its other bits: it is still
// where that step's sampling left it. Where nothing was drawn (0xffffffff), anything will do, since the answer has failed.
//
// An embedding larger than a binding is split by rows, one dispatch a part; a token's row is in exactly one of them.
// An invocation decodes one chunk of 32. Grid: x = ceil(T * D / 32 / 64).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Token { id: u32, position: u32, sequence: u32, slot0: u32, slot1: u32 }

override K: u32;
override ROW_WORDS: u32;
override FIRST_ROW: u32;
override NUM_ROWS: u32;
override SCALE: f32;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [NUM_ROWS, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> tokens: array<Token>; // [T]
@group(0) @binding(2) var<storage, read> drawn: array<u32>; // [R] of the step before
@group(0) @binding(3) var<storage, read_write> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(4) var<uniform> step: Step;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let t = global.x / (K / 32u);
    let chunk = global.x % (K / 32u);
    if (t >= step.num_tokens) {
        return;
    }
    var id = tokens[t].id;
    if (id >= 0x80000000u) {
        id = drawn[id & 0x7fffffffu];
        id = select(id, 0u, id == 0xffffffffu);
    }
    if (id < FIRST_ROW || id - FIRST_ROW >= NUM_ROWS) {
        return;
    }
    let w = load_chunk(id - FIRST_ROW, chunk);
    let out = t * (K / 4u) + chunk * 8u;
    x[out] = SCALE * w[0];
    x[out + 1u] = SCALE * w[1];
    x[out + 2u] = SCALE * w[2];
    x[out + 3u] = SCALE * w[3];
    x[out + 4u] = SCALE * w[4];
    x[out + 5u] = SCALE * w[5];
    x[out + 6u] = SCALE * w[6];
    x[out + 7u] = SCALE * w[7];
}
