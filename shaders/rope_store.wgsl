// Splits one projection into queries, keys and values; normalises the heads of q and k where the model does (QK norm),
// rotates them (Su et al. 2021), scales q, and stores k and v in the token's slot of the paged cache.
//
// Input row: H query heads, then KV_HEADS key heads, then KV_HEADS value heads, HEAD_DIM values each.
// Rotation pairs are (2i, 2i + 1), or (i, i + ROPE_DIM / 2) when NEOX; dimensions from ROPE_DIM on stay as they are.
// Angles come from a table made in double precision: WGSL's sin and cos promise nothing for large arguments.
// A cache row is KV_HEADS * HEAD_DIM values, as f32 or as pairs of f16 in a word.
//
// LANES lanes share a (token, head), GROUPS of them a workgroup; a lane writes two neighbouring dimensions at a time.
// Grid: x = ceil(T * (H + 2 * KV_HEADS) / GROUPS).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Token { id: u32, position: u32, sequence: u32, slot0: u32, slot1: u32 }

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
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [T, (H + 2 KV_HEADS) * HEAD_DIM] f32
@group(0) @binding(1) var<storage, read> angles: array<vec2<f32>>; // [positions, ROPE_DIM / 2] cos, sin
@group(0) @binding(2) var<storage, read> norms: array<f32>; // [2, HEAD_DIM] for q, for k; unused without QK_NORM
@group(0) @binding(3) var<storage, read> tokens: array<Token>; // [T]
@group(0) @binding(4) var<storage, read_write> q: array<vec2<f32>>; // [T, H * HEAD_DIM / 2]
@group(0) @binding(5) var<storage, read_write> k_cache: array<u32>; // [slots, KV_HEADS * HEAD_DIM] f32 or f16 pairs
@group(0) @binding(6) var<storage, read_write> v_cache: array<u32>; // [slots, KV_HEADS * HEAD_DIM] f32 or f16 pairs
@group(0) @binding(7) var<uniform> step: Step;

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let num_heads = HEADS + 2u * KV_HEADS;
    let task = workgroup.x * GROUPS + local.y;
    let is_real = task < step.num_tokens * num_heads;
    // Lanes behind the last head repeat it and store nothing: all lanes meet the same barriers.
    let t = min(task / num_heads, step.num_tokens - 1u);
    let head = task % num_heads;
    let base = (t * num_heads + head) * HEAD_DIM;
    let is_query = head < HEADS;
    let is_value = head >= HEADS + KV_HEADS;
    let norm = select(HEAD_DIM, 0u, is_query);

    var scale = 1.0;
    if (QK_NORM) {
        var squares = 0.0;
        for (var i = local.x; i < HEAD_DIM; i += LANES) {
            squares += qkv[base + i] * qkv[base + i];
        }
        scale = 1.0 / sqrt(reduce_sum(squares, local.x, local.y) / f32(HEAD_DIM) + EPSILON);
    }
    if (!is_real) {
        return;
    }
    let token = tokens[t];
    let slot = select(token.slot1, token.slot0, KV_GROUP == 0u);
    for (var i = 2u * local.x; i < HEAD_DIM; i += 2u * LANES) {
        var pair = vec2<f32>(qkv[base + i], qkv[base + i + 1u]);
        if (!is_value) {
            pair.x = rotated(base, norm, scale, token.position, i);
            pair.y = rotated(base, norm, scale, token.position, i + 1u);
        }
        if (is_query) {
            q[((t * HEADS + head) * HEAD_DIM + i) / 2u] = pair * SCALE;
        } else {
            let kv_head = select(head - HEADS, head - HEADS - KV_HEADS, is_value);
            store(is_value, (slot * KV_HEADS + kv_head) * HEAD_DIM + i, pair);
        }
    }
}
