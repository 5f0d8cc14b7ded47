// Q4_K: (d * scale) * q - (dmin * minimum). Layout: src/quant/q4_k.rs. Block of 8 chunks, 36 words: d and dmin; 3 words
// of scales and minimums; 4 words of nibbles per chunk.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let block = row * ROW_WORDS + chunk / 8u * 36u;
    let index = chunk & 7u;
    let factors = factors_of(block, index);
    let s = factors.x;
    let m = vec4<f32>(factors.y);
    let at = block + 4u + 4u * index;
    let a = weights[at];
    let b = weights[at + 1u];
    let c = weights[at + 2u];
    let d = weights[at + 3u];
    return array<vec4<f32>, 8>(
        s * low_quad(a) - m, s * low_quad(b) - m, s * low_quad(c) - m, s * low_quad(d) - m,
        s * high_quad(a) - m, s * high_quad(b) - m, s * high_quad(c) - m, s * high_quad(d) - m);
}

// The scale and the minimum of a chunk.
fn factors_of(block: u32, index: u32) -> vec2<f32> {
    let shift = 4u * index;
    let high = weights[block + 3u] >> shift;
    let scale = ((weights[block + 1u] >> shift) & 15u) | ((high & 3u) << 4u);
    let minimum = ((weights[block + 2u] >> shift) & 15u) | ((high & 12u) << 2u);
    return unpack2x16float(weights[block]) * vec2<f32>(vec2<u32>(scale, minimum));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let block = row * ROW_WORDS + chunk / 8u * 36u;
    let index = chunk & 7u;
    let factors = factors_of(block, index).xxyy * vec4<f32>(1.0, 1.0, -1.0, -1.0);
    let at = block + 4u + 4u * index;
    let nibbles = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    return array<vec4<u32>, 3>(
        nibbles & vec4<u32>(0x0f0f0f0fu), (nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), bitcast<vec4<u32>>(factors));
}

fn low_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
}

fn high_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(4u, 12u, 20u, 28u)) & vec4<u32>(15u));
}
