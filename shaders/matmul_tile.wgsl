// y[t, n] = sum over k of W[n, k] * x[t, k], for many rows t, from tiles in workgroup memory: each weight is decoded
// once for all rows of x in a tile.
//
// A workgroup of 16 x HEIGHT invocations computes 64 weight rows by 4 * HEIGHT rows of x, walking K in chunks of 32.
// Invocation (i, j) owns weight rows i, i + 16, i + 32, i + 48 and rows of x j, j + HEIGHT, and so on; tiles are stored
// quad by quad with the rows side by side, so that neighbouring invocations read neighbouring quads.
// When gated, the tile's weight rows are 32 of the gate and the same 32 of the up-projection, N rows further on:
// an invocation then owns two of each.
// Tiles are of Real, which a piece (lib/real_*.wgsl) says is f32 or f16; what a chunk adds up to is added in f32.
// Grid: x = ceil(N / 64), or ceil(N / 32) when gated, y = ceil(T / (4 * HEIGHT)).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override K: u32;
override ROW_WORDS: u32;
override N: u32;
override GATED: bool;
override OUT_STRIDE: u32;
override OUT_OFFSET: u32;
override EPILOGUE: u32; // see lib/epilogue.wgsl
override SAMPLED: bool;
override HEIGHT: u32;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [N or 2N, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [T, OUT_STRIDE] f32
@group(0) @binding(3) var<uniform> step: Step;

var<workgroup> w_tile: array<vec4<Real>, 512>; // [8 quads, 64 weight rows]
var<workgroup> x_tile: array<vec4<Real>, 32 * HEIGHT>; // [8 quads, 4 * HEIGHT rows of x]

@compute @workgroup_size(16, HEIGHT)
fn main(
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
) {
    let num_rows = select(step.num_tokens, step.num_rows, SAMPLED);
    let n = workgroup.x * select(64u, 32u, GATED);
    let tile_rows = 4u * HEIGHT;
    let t = workgroup.y * tile_rows;

    var sum0 = vec4<f32>(0.0);
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
    for (var chunk = 0u; chunk < K / 32u; chunk += 1u) {
        workgroupBarrier();
        if (index < 64u) {
            let w = load_chunk(weight_row(n, index), chunk);
            w_tile[index] = real(w[0]);
            w_tile[64u + index] = real(w[1]);
            w_tile[128u + index] = real(w[2]);
            w_tile[192u + index] = real(w[3]);
            w_tile[256u + index] = real(w[4]);
            w_tile[320u + index] = real(w[5]);
            w_tile[384u + index] = real(w[6]);
            w_tile[448u + index] = real(w[7]);
        }
        for (var i = index; i < 8u * tile_rows; i += 16u * HEIGHT) {
            // Neighbours read neighbouring quads of x and scatter them over the tile's columns.
            let row = min(t + i / 8u, num_rows - 1u) * (K / 4u);
            x_tile[(i % 8u) * tile_rows + i / 8u] = real(x[row + chunk * 8u + i % 8u]);
        }
        workgroupBarrier();
        var part0 = vec4<Real>();
        var part1 = vec4<Real>();
        var part2 = vec4<Real>();
        var part3 = vec4<Real>();
        for (var quad = 0u; quad < 8u; quad += 1u) {
            let at = quad * 64u + local.x;
            let w = mat4x4<Real>(w_tile[at], w_tile[at + 16u], w_tile[at + 32u], w_tile[at + 48u]);
            let from_x = quad * tile_rows + local.y;
            part0 += x_tile[from_x] * w;
            part1 += x_tile[from_x + HEIGHT] * w;
            part2 += x_tile[from_x + 2u * HEIGHT] * w;
            part3 += x_tile[from_x + 3u * HEIGHT] * w;
        }
        sum0 += vec4<f32>(part0);
        sum1 += vec4<f32>(part1);
        sum2 += vec4<f32>(part2);
        sum3 += vec4<f32>(part3);
    }
    store(trusted(sum0), t + local.y, num_rows, n, local.x);
    store(trusted(sum1), t + local.y + HEIGHT, num_rows, n, local.x);
    store(trusted(sum2), t + local.y + 2u * HEIGHT, num_rows, n, local.x);
    store(trusted(sum3), t + local.y + 3u * HEIGHT, num_rows, n, local.x);
}
