// Heads piece of attend_split.wgsl: one query head has a key-value head to itself, or takes it alone.

alias HeadQuads = vec4<f32>;

// The product of a key's quad with the head's.
fn scores(key: vec4<f32>, queries: HeadQuads) -> vec4<f32> {
    return vec4<f32>(dot(key, queries), 0.0, 0.0, 0.0);
}

// The quad, times the head's weight.
fn weighted(value: vec4<f32>, weights: vec4<f32>) -> HeadQuads {
    return value * weights.x;
}

// The head's quad, times its factor.
fn scaled(quads: HeadQuads, factors: vec4<f32>) -> HeadQuads {
    return quads * factors.x;
}

fn quad_of(quads: HeadQuads, head: u32) -> vec4<f32> {
    return quads;
}

fn with_quad(quads: HeadQuads, head: u32, quad: vec4<f32>) -> HeadQuads {
    return quad;
}
