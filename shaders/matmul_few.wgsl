// y[t, n] = sum over k of W[n, k] * x[t, k], for 2 to 4 rows t: W is read and decoded once for all of them.
//
// A lane multiplies 4 weight rows with 4 rows of x: a quad of four weight rows makes a 4 x 4 matrix, and each quad of x
// times that matrix adds to four sums at once. When gated, the four are rows n, n + 1 of the gate and of the
// up-projection, which lies N rows further on.
// A workgroup computes GROUPS times 4 weight rows (GROUPS times 2 outputs when gated); LANES lanes walk the chunks of 32
// together.
// Grid: x = ceil(N / outputs of a workgroup), y = ceil(T / 4).

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
override SAMPLED: bool;

@group(0) @binding(0) var<storage, read> weights: array<u32>; // [N or 2N, ROW_WORDS] packed
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [T, K / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>; // [T, OUT_STRIDE] f32
@group(0) @binding(3) var<uniform> step: Step;

// Where each row of x begins, in quads; rows behind the last repeat it.
var<private> start: vec4<u32>;
// For each row of x, the sums of the four weight rows.
var<private> sum0: vec4<f32>;
var<private> sum1: vec4<f32>;
var<private> sum2: vec4<f32>;
var<private> sum3: vec4<f32>;

fn accumulate(w: mat4x4<f32>, at: u32) {
    sum0 += x[start.x + at] * w;
    sum1 += x[start.y + at] * w;
    sum2 += x[start.z + at] * w;
    sum3 += x[start.w + at] * w;
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

@compute @workgroup_size(LANES, GROUPS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) workgroup: vec3<u32>) {
    let num_rows = select(step.num_tokens, step.num_rows, SAMPLED);
    let n = (workgroup.x * GROUPS + local.y) * select(4u, 2u, GATED);
    // Behind the last row it is computed again and not stored: all lanes meet the same barriers.
    let last = N - 1u;
    let row0 = min(n, last);
    let row1 = min(n + 1u, last);
    let row2 = select(min(n + 2u, last), row0 + N, GATED);
    let row3 = select(min(n + 3u, last), row1 + N, GATED);

    let t = workgroup.y * 4u;
    start = min(t + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(num_rows - 1u)) * (K / 4u);
    for (var chunk = local.x; chunk < K / 32u; chunk += LANES) {
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
    let sums0 = reduce_sum4(sum0, local.x, local.y);
    let sums1 = reduce_sum4(sum1, local.x, local.y);
    let sums2 = reduce_sum4(sum2, local.x, local.y);
    let sums3 = reduce_sum4(sum3, local.x, local.y);
    if (local.x == 0u) {
        store(sums0, t, num_rows, n);
        store(sums1, t + 1u, num_rows, n);
        store(sums2, t + 2u, num_rows, n);
        store(sums3, t + 3u, num_rows, n);
    }
}
