// Heads piece of attend_split.wgsl: three query heads share a key-value head.

alias HeadQuads = mat3x4<f32>;

// The products of a key's quad with the heads'.
fn scores(key: vec4<f32>, queries: HeadQuads) -> vec4<f32> {
    return vec4<f32>(key * queries, 0.0);
}

// The quad, times each head's weight.
fn weighted(value: vec4<f32>, weights: vec4<f32>) -> HeadQuads {
    return HeadQuads(value * weights.x, value * weights.y, value * weights.z);
}

// Each head's quad, times its factor.
fn scaled(quads: HeadQuads, factors: vec4<f32>) -> HeadQuads {
    return HeadQuads(quads[0] * factors.x, quads[1] * factors.y, quads[2] * factors.z);
}

fn quad_of(quads: HeadQuads, head: u32) -> vec4<f32> {
    var all = quads;
    return all[head];
}

fn with_quad(quads: HeadQuads, head: u32, quad: vec4<f32>) -> HeadQuads {
    var all = quads;
    all[head] = quad;
    return all;
}
