// y[t, n] = sum over k of W[n, k] * x[t, k], for many rows t, from registers alone: no workgroup memory, no barrier.
//
// An invocation multiplies 4 weight rows with 16 rows of x: a quad of four rows makes a 4 x 4 matrix, and each quad of
// x times that matrix adds to four sums at once. When gated, the four are rows n, n + 1 of the gate and of the
// up-projection, which lies N rows further on.
// A workgroup covers 4 * LANES weight rows (2 * LANES outputs when gated) and 16 rows of x, which all its lanes share: a
// piece says who reads them (lib/rows_*.wgsl).
// Grid: x = ceil(N / outputs of a workgroup), y = ceil(T / 16).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override K: u32;
override ROW_WORDS: u32;
override N: u32;
override GATED: bool;
override OUT_STRIDE: u32;
override OUT_OFFSET: u32;
override EPILOGUE: u32; // see lib/epilogue.wgsl
override LANES: u32;
override SAMPLED: bool;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [N or 2N, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [T, OUT_STRIDE] f32
@group(0) @binding(3) var<uniform> step: Step;

var<private> sum0: vec4<f32>;
var<private> sum1: vec4<f32>;
var<private> sum2: vec4<f32>;
var<private> sum3: vec4<f32>;
var<private> sum4: vec4<f32>;
var<private> sum5: vec4<f32>;
var<private> sum6: vec4<f32>;
var<private> sum7: vec4<f32>;
var<private> sum8: vec4<f32>;
var<private> sum9: vec4<f32>;
var<private> sum10: vec4<f32>;
var<private> sum11: vec4<f32>;
var<private> sum12: vec4<f32>;
var<private> sum13: vec4<f32>;
var<private> sum14: vec4<f32>;
var<private> sum15: vec4<f32>;

fn accumulate(w: mat4x4<f32>, at: u32) {
    let a = four_rows(0u, at);
    sum0 += a[0] * w;
    sum1 += a[1] * w;
    sum2 += a[2] * w;
    sum3 += a[3] * w;
    let b = four_rows(1u, at);
    sum4 += b[0] * w;
    sum5 += b[1] * w;
    sum6 += b[2] * w;
    sum7 += b[3] * w;
    let c = four_rows(2u, at);
    sum8 += c[0] * w;
    sum9 += c[1] * w;
    sum10 += c[2] * w;
    sum11 += c[3] * w;
    let d = four_rows(3u, at);
    sum12 += d[0] * w;
    sum13 += d[1] * w;
    sum14 += d[2] * w;
    sum15 += d[3] * w;
}

// The sums of row i of the sixteen. A choice, and not an array: one that is indexed lies in memory.
fn sum(i: u32) -> vec4<f32> {
    switch i {
        case 0u: {
            return sum0;
        }
        case 1u: {
            return sum1;
        }
        case 2u: {
            return sum2;
        }
        case 3u: {
            return sum3;
        }
        case 4u: {
            return sum4;
        }
        case 5u: {
            return sum5;
        }
        case 6u: {
            return sum6;
        }
        case 7u: {
            return sum7;
        }
        case 8u: {
            return sum8;
        }
        case 9u: {
            return sum9;
        }
        case 10u: {
            return sum10;
        }
        case 11u: {
            return sum11;
        }
        case 12u: {
            return sum12;
        }
        case 13u: {
            return sum13;
        }
        case 14u: {
            return sum14;
        }
        default: {
            return sum15;
        }
    }
}

fn store(sums: vec4<f32>, t: u32, num_rows: u32, n: u32) {
    if (t >= num_rows) {
        return;
    }
    let out = t * OUT_STRIDE + OUT_OFFSET + n;
    if (GATED) {
        if (n < N) {
            y[out] = finish(0.0, sums.x, sums.z);
        }
        if (n + 1u < N) {
            y[out + 1u] = finish(0.0, sums.y, sums.w);
        }
    } else {
        for (var i = 0u; i < 4u; i += 1u) {
            if (n + i < N) {
                y[out + i] = finish(y[out + i], sums[i], 0.0);
            }
        }
    }
}

@compute @workgroup_size(LANES)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let num_rows = select(step.num_tokens, step.num_rows, SAMPLED);
    let n = global.x * select(4u, 2u, GATED);
    // Lanes behind the last row repeat it and store nothing: all lanes meet in four_rows.
    let last = N - 1u;
    let row0 = min(n, last);
    let row1 = min(n + 1u, last);
    let row2 = select(min(n + 2u, last), row0 + N, GATED);
    let row3 = select(min(n + 3u, last), row1 + N, GATED);

    let t = global.y * 16u;
    begin_rows(t, num_rows - 1u);
    for (var chunk = 0u; chunk < K / 32u; chunk += 1u) {
        let w0 = load_chunk(row0, chunk);
        let w1 = load_chunk(row1, chunk);
        let w2 = load_chunk(row2, chunk);
        let w3 = load_chunk(row3, chunk);
        let at = chunk * 8u;
        accumulate(mat4x4<f32>(w0[0], w1[0], w2[0], w3[0]), at);
        accumulate(mat4x4<f32>(w0[1], w1[1], w2[1], w3[1]), at + 1u);
        accumulate(mat4x4<f32>(w0[2], w1[2], w2[2], w3[2]), at + 2u);
        accumulate(mat4x4<f32>(w0[3], w1[3], w2[3], w3[3]), at + 3u);
        accumulate(mat4x4<f32>(w0[4], w1[4], w2[4], w3[4]), at + 4u);
        accumulate(mat4x4<f32>(w0[5], w1[5], w2[5], w3[5]), at + 5u);
        accumulate(mat4x4<f32>(w0[6], w1[6], w2[6], w3[6]), at + 6u);
        accumulate(mat4x4<f32>(w0[7], w1[7], w2[7], w3[7]), at + 7u);
    }
    for (var i = 0u; i < 16u; i += 1u) {
        store(sum(i), t + i, num_rows, n);
    }
}
