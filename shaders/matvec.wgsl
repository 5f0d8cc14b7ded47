// y[t, n] = sum over k of W[n, k] * x[t, k], for one row t: bound by reading W, which is decoded in registers. More rows take
// matmul_few.wgsl or another; here each would read W again.
//
// A lane takes ROWS (2 or 4) weight rows at once, so that each quad of x is read once for all of them. They come in
// pairs: rows n and n + 1, or, when gated, row n of the gate and row n of the up-projection, which lies N rows further on.
// A workgroup computes GROUPS times ROWS weight rows for one t; LANES lanes walk the chunks of 32 together.
// Pieces say where W comes from (lib/weights_*.wgsl), what becomes of x on the way (lib/input_*.wgsl), and in which numbers
// they are multiplied (lib/product_*.wgsl).
// Grid: x = ceil(N / outputs of a workgroup), y = rows.

override K: u32;
override ROW_WORDS: u32;
override ROW_WORDS_2: u32; // of weights_2, see lib/weights_two.wgsl
override SPLIT: u32; // weight rows from here on are those of weights_2
override N: u32;
override GATED: bool;
override OUT_STRIDE: u32;
override OUT_OFFSET: u32;
override EPILOGUE: u32; // see lib/epilogue.wgsl
override EPSILON: f32; // of the norm, see lib/input_norm.wgsl
override ROWS: u32;
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [N or 2N, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [T, OUT_STRIDE] f32

fn total(quad: vec4<f32>) -> f32 {
    return quad.x + quad.y + quad.z + quad.w;
}

fn store(t: u32, n: u32, a: f32, b: f32) {
    let out = t * OUT_STRIDE + OUT_OFFSET + n;
    if (GATED) {
        if (n < N) {
            y[out] = finish(0.0, a, b);
        }
    } else {
        if (n < N) {
            y[out] = finish(y[out], a, 0.0);
        }
        if (n + 1u < N) {
            y[out + 1u] = finish(y[out + 1u], b, 0.0);
        }
    }
}

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let t = workgroup.y;
    let outputs = select(2u, 1u, GATED); // of a pair
    let n = (workgroup.x * GROUPS + local.y) * (ROWS / 2u) * outputs;
    // Behind the last row one is computed again and not stored: all lanes meet the same barriers.
    let row0 = min(n, N - 1u);
    let row1 = select(min(n + 1u, N - 1u), row0 + N, GATED);
    let row2 = min(n + outputs, N - 1u);
    let row3 = select(min(n + 3u, N - 1u), row2 + N, GATED);
    let quads = t * (K / 4u);
    let is_writer = workgroup.x == 0u && local.y == 0u;
    let factor = input_factor(quads, local.x, local.y);

    var sum0 = vec4<f32>(0.0);
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
    var squares = vec4<f32>(0.0);
    for (var chunk = local.x; chunk < K / 32u; chunk += LANES) {
        let i = chunk * 8u;
        let x0 = input_quad(quads, i, factor, is_writer);
        let x1 = input_quad(quads, i + 1u, factor, is_writer);
        let x2 = input_quad(quads, i + 2u, factor, is_writer);
        let x3 = input_quad(quads, i + 3u, factor, is_writer);
        let x4 = input_quad(quads, i + 4u, factor, is_writer);
        let x5 = input_quad(quads, i + 5u, factor, is_writer);
        let x6 = input_quad(quads, i + 6u, factor, is_writer);
        let x7 = input_quad(quads, i + 7u, factor, is_writer);
        if (NORMED) {
            squares += x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3 + x4 * x4 + x5 * x5 + x6 * x6 + x7 * x7;
        }
        let input = prepare(array<vec4<f32>, 8>(
            weighted(x0, i), weighted(x1, i + 1u), weighted(x2, i + 2u), weighted(x3, i + 3u),
            weighted(x4, i + 4u), weighted(x5, i + 5u), weighted(x6, i + 6u), weighted(x7, i + 7u)));
        sum0 += times(row0, chunk, input);
        sum1 += times(row1, chunk, input);
        if (ROWS == 4u) {
            sum2 += times(row2, chunk, input);
            sum3 += times(row3, chunk, input);
        }
    }
    // With two rows there is room for the norm's sum in the same reduction.
    let third = select(total(squares), total(sum2), ROWS == 4u);
    var sums = reduce_sum4(vec4<f32>(total(sum0), total(sum1), third, total(sum3)), local.x, local.y);
    if (NORMED) {
        var square = sums.z;
        if (ROWS == 4u) {
            square = reduce_sum(total(squares), local.x, local.y);
        }
        sums *= 1.0 / sqrt(square / f32(K) + EPSILON);
    }
    if (local.x == 0u) {
        store(t, n, sums.x, sums.y);
        if (ROWS == 4u) {
            store(t, n + outputs, sums.z, sums.w);
        }
    }
}
