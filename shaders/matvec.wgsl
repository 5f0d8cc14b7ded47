// y[t, n] = sum over k of W[n, k] * x[t, k], for few rows t: bound by reading W, which is decoded in registers.
//
// Weight rows are taken in pairs, so that each quad of x is read once for both: rows 2p and 2p + 1, or, when gated,
// row p of the gate and row p of the up-projection, which lies N rows further on.
// A workgroup computes GROUPS pairs for one t; LANES lanes walk a pair's chunks of 32 together.
// Grid: x = ceil(pairs / GROUPS), y = rows.

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override K: u32;
override ROW_WORDS: u32;
override N: u32;
override GATED: bool;
override OUT_STRIDE: u32;
override OUT_OFFSET: u32;
override EPILOGUE: u32; // see lib/epilogue.wgsl
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [N or 2N, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [T, OUT_STRIDE] f32
@group(0) @binding(3) var<uniform> step: Step;

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let pair = workgroup.x * GROUPS + local.y;
    // Lanes behind the last pair compute a row again and store nothing: all lanes meet the same barriers.
    let row_a = min(select(2u * pair, pair, GATED), N - 1u);
    let row_b = select(min(row_a + 1u, N - 1u), row_a + N, GATED);

    var sum_a = vec4<f32>(0.0);
    var sum_b = vec4<f32>(0.0);
    for (var chunk = local.x; chunk < K / 32u; chunk += LANES) {
        let a = load_chunk(row_a, chunk);
        let b = load_chunk(row_b, chunk);
        let at = workgroup.y * (K / 4u) + chunk * 8u;
        let x0 = x[at];
        let x1 = x[at + 1u];
        let x2 = x[at + 2u];
        let x3 = x[at + 3u];
        let x4 = x[at + 4u];
        let x5 = x[at + 5u];
        let x6 = x[at + 6u];
        let x7 = x[at + 7u];
        sum_a += a[0] * x0 + a[1] * x1 + a[2] * x2 + a[3] * x3 + a[4] * x4 + a[5] * x5 + a[6] * x6 + a[7] * x7;
        sum_b += b[0] * x0 + b[1] * x1 + b[2] * x2 + b[3] * x3 + b[4] * x4 + b[5] * x5 + b[6] * x6 + b[7] * x7;
    }
    let a = reduce_sum(sum_a.x + sum_a.y + sum_a.z + sum_a.w, local.x, local.y);
    let b = reduce_sum(sum_b.x + sum_b.y + sum_b.z + sum_b.w, local.x, local.y);

    let out = workgroup.y * OUT_STRIDE + OUT_OFFSET + select(2u * pair, pair, GATED);
    if (local.x != 0u) {
        return;
    }
    if (GATED) {
        if (pair < N) {
            y[out] = finish(0.0, a, b);
        }
    } else {
        if (2u * pair < N) {
            y[out] = finish(y[out], a, 0.0);
        }
        if (2u * pair + 1u < N) {
            y[out + 1u] = finish(y[out + 1u], b, 0.0);
        }
    }
}
