// Rows piece of matmul.wgsl: every lane reads all rows of x for itself.

// Where each of the sixteen rows begins, in quads; rows behind the last repeat it.
var<private> start: array<u32, 16>;

fn begin_rows(t: u32, last: u32) {
    for (var i = 0u; i < 16u; i += 1u) {
        start[i] = min(t + i, last) * (K / 4u);
    }
}

// Quad `at` of rows 4 * four to 4 * four + 3.
fn four_rows(four: u32, at: u32) -> mat4x4<f32> {
    let i = 4u * four;
    return mat4x4<f32>(x[start[i] + at], x[start[i + 1u] + at], x[start[i + 2u] + at], x[start[i + 3u] + at]);
}
