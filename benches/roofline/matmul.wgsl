// c[m, n] = sum over k of a[m, k] * b[n, k], all f32: what a plain, well-blocked product reaches on an adapter.
//
// A workgroup of 16 x 16 invocations computes 64 x 64 values, 4 x 4 each, walking K in steps of 16 through tiles in
// workgroup memory. M and N are multiples of 64, K of 16. Grid: x = N / 64, y = M / 64.
struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }

override K: u32;
override N: u32;

@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>; // [M, K / 4]
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>; // [N, K / 4]
@group(0) @binding(2) var<storage, read_write> c: array<f32>; // [M, N]
@group(0) @binding(3) var<uniform> step: Step;

var<workgroup> a_tile: array<array<vec4<f32>, 16>, 16>; // [k, 64 rows]
var<workgroup> b_tile: array<array<vec4<f32>, 16>, 16>; // [k, 64 rows]

@compute @workgroup_size(16, 16)
fn main(
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
) {
    // Each invocation loads one quad of either tile: row `row`, values 4 * part to 4 * part + 3.
    let row = index / 4u;
    let part = index % 4u;
    let at_a = (workgroup.y * 64u + row) * (K / 4u) + part;
    let at_b = (workgroup.x * 64u + row) * (K / 4u) + part;
    var sum0 = vec4<f32>(0.0);
    var sum1 = vec4<f32>(0.0);
    var sum2 = vec4<f32>(0.0);
    var sum3 = vec4<f32>(0.0);
    for (var k = 0u; k < K / 4u; k += 4u) {
        let quad_a = a[at_a + k];
        let quad_b = b[at_b + k];
        workgroupBarrier();
        for (var i = 0u; i < 4u; i += 1u) {
            a_tile[4u * part + i][row / 4u][row % 4u] = quad_a[i];
            b_tile[4u * part + i][row / 4u][row % 4u] = quad_b[i];
        }
        workgroupBarrier();
        for (var i = 0u; i < 16u; i += 1u) {
            let of_a = a_tile[i][local.y];
            let of_b = b_tile[i][local.x];
            sum0 += of_a.x * of_b;
            sum1 += of_a.y * of_b;
            sum2 += of_a.z * of_b;
            sum3 += of_a.w * of_b;
        }
    }
    let out = (workgroup.y * 64u + 4u * local.y) * N + workgroup.x * 64u + 4u * local.x;
    for (var i = 0u; i < 4u; i += 1u) {
        c[out + i] = sum0[i];
        c[out + N + i] = sum1[i];
        c[out + 2u * N + i] = sum2[i];
        c[out + 3u * N + i] = sum3[i];
    }
}
