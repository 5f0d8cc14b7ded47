// y[p, :] = the sum of x[first .. first + num, :]: the tokens of a pool, added up.
//
// An invocation adds up one quad. Grid: x = ceil(D / 4 / 64), y = P.

struct Pool { first: u32, num: u32 }

override D: u32;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>; // [T, D / 4]
@group(0) @binding(1) var<storage, read> pools: array<Pool>; // [P]
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // [P, D / 4]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let quads = D / 4u;
    if (global.x >= quads) {
        return;
    }
    let pool = pools[global.y];
    var sum = vec4<f32>(0.0);
    for (var row = pool.first; row < pool.first + pool.num; row += 1u) {
        sum += x[row * quads + global.x];
    }
    y[global.y * quads + global.x] = sum;
}
