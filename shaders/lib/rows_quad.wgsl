// Rows piece of matmul.wgsl: of every four rows of x, each of a quad's four lanes reads one, and the others take it from
// there. What lanes read one by one (gathers, on adapters that compute on the CPU) is a fourth.

// Where this lane's row of every four begins, in quads; rows behind the last repeat it.
var<private> start: array<u32, 4>;

fn begin_rows(t: u32, last: u32) {
    // Subgroups need not be made of neighbours in a workgroup; how many lanes come before this one tells its place.
    let member = subgroupExclusiveAdd(1u) % 4u;
    for (var i = 0u; i < 4u; i += 1u) {
        start[i] = min(t + 4u * i + member, last) * (K / 4u);
    }
}

// Quad `at` of rows 4 * four to 4 * four + 3.
fn four_rows(four: u32, at: u32) -> mat4x4<f32> {
    let own = x[start[four] + at];
    return mat4x4<f32>(quadBroadcast(own, 0u), quadBroadcast(own, 1u), quadBroadcast(own, 2u), quadBroadcast(own, 3u));
}
