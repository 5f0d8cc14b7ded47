// y[t, n] = sum over k of W[n, k] * x[t, k], for many rows t, in products of bytes (lib/int8.wgsl says how x is rounded):
// weights stay integers, and an instruction of most GPUs multiplies four pairs of them.
//
// A workgroup of 16 x 8 invocations computes 64 weight rows by 32 rows of x, walking K in chunks of 32: half of them
// unpack a weight row's chunk each, a quarter quantise one of a row of x. Invocation (i, j) owns weight rows i, i + 16,
// i + 32, i + 48 and rows of x j, j + 8, j + 16, j + 24.
// When gated, the tile's weight rows are 32 of the gate and the same 32 of the up-projection, N rows further on:
// an invocation then owns two of each.
// Grid: x = ceil(N / 64), or ceil(N / 32) when gated, y = ceil(T / 32).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override K: u32;
override ROW_WORDS: u32;
override N: u32;
override GATED: bool;
override OUT_STRIDE: u32;
override OUT_OFFSET: u32;
override EPILOGUE: u32; // see lib/epilogue.wgsl
override SAMPLED: bool;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [N or 2N, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [T, OUT_STRIDE] f32
@group(0) @binding(3) var<uniform> step: Step;

var<workgroup> w_tile: array<array<vec4<u32>, 64>, 3>; // [low, high, factors; 64 weight rows]
var<workgroup> x_low: array<vec4<u32>, 32>;
var<workgroup> x_high: array<vec4<u32>, 32>;
var<workgroup> x_factors: array<vec3<f32>, 32>;

// Chunk `chunk` of row `row` of x.
fn quantized_chunk(row: u32, chunk: u32) -> Quantized {
    let at = row * (K / 4u) + chunk * 8u;
    return quantize(array<vec4<f32>, 8>(
        x[at], x[at + 1u], x[at + 2u], x[at + 3u], x[at + 4u], x[at + 5u], x[at + 6u], x[at + 7u]));
}

// The products of row `r` of the x tile with four weight rows.
fn products(w: array<array<vec4<u32>, 3>, 4>, r: u32) -> vec4<f32> {
    let quantized = Quantized(x_low[r], x_high[r], x_factors[r]);
    return vec4<f32>(
        dot_packed(w[0], quantized), dot_packed(w[1], quantized), dot_packed(w[2], quantized), dot_packed(w[3], quantized));
}

@compute @workgroup_size(16, 8)
fn main(
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
) {
    let num_rows = select(step.num_tokens, step.num_rows, SAMPLED);
    let n = workgroup.x * select(64u, 32u, GATED);
    let t = workgroup.y * 32u;

    var sum0 = vec4<f32>(0.0);
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
    for (var chunk = 0u; chunk < K / 32u; chunk += 1u) {
        workgroupBarrier();
        if (index < 64u) {
            let w = load_packed(weight_row(n, index), chunk);
            w_tile[0][index] = w[0];
            w_tile[1][index] = w[1];
            w_tile[2][index] = w[2];
        } else if (index < 96u) {
            let r = index - 64u;
            let quantized = quantized_chunk(min(t + r, num_rows - 1u), chunk);
            x_low[r] = quantized.low;
            x_high[r] = quantized.high;
            x_factors[r] = quantized.factors;
        }
        workgroupBarrier();
        var w = array<array<vec4<u32>, 3>, 4>();
        for (var part = 0u; part < 4u; part += 1u) {
            let r = local.x + 16u * part;
            w[part] = array<vec4<u32>, 3>(w_tile[0][r], w_tile[1][r], w_tile[2][r]);
        }
        sum0 += products(w, local.y);
        sum1 += products(w, local.y + 8u);
        sum2 += products(w, local.y + 16u);
        sum3 += products(w, local.y + 24u);
    }
    store(sum0, t + local.y, num_rows, n, local.x);
    store(sum1, t + local.y + 8u, num_rows, n, local.x);
    store(sum2, t + local.y + 16u, num_rows, n, local.x);
    store(sum3, t + local.y + 24u, num_rows, n, local.x);
}
