// Q4_0: scale * (q - 8). Layout: src/quant/q4_0.rs. Row: 4 words per chunk, then the f16 scales.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 8u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let at = start + chunk * 4u;
    let a = weights[at];
    let b = weights[at + 1u];
    let c = weights[at + 2u];
    let d = weights[at + 3u];
    return array<vec4<f32>, 8>(
        scale * (low_quad(a) - 8.0), scale * (low_quad(b) - 8.0),
        scale * (low_quad(c) - 8.0), scale * (low_quad(d) - 8.0),
        scale * (high_quad(a) - 8.0), scale * (high_quad(b) - 8.0),
        scale * (high_quad(c) - 8.0), scale * (high_quad(d) - 8.0));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 8u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let at = start + chunk * 4u;
    let nibbles = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let factors = scale * vec4<f32>(1.0, 1.0, -8.0, -8.0);
    return array<vec4<u32>, 3>(
        nibbles & vec4<u32>(0x0f0f0f0fu), (nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), bitcast<vec4<u32>>(factors));
}

fn low_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
}

fn high_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(4u, 12u, 20u, 28u)) & vec4<u32>(15u));
}
