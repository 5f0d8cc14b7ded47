// Q8_0: scale * q, q signed. Layout: src/quant/q8_0.rs. Row: 8 words per chunk, then the f16 scales.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 4u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let at = start + chunk * 8u;
    return array<vec4<f32>, 8>(
        scale * signed_quad(weights[at]), scale * signed_quad(weights[at + 1u]),
        scale * signed_quad(weights[at + 2u]), scale * signed_quad(weights[at + 3u]),
        scale * signed_quad(weights[at + 4u]), scale * signed_quad(weights[at + 5u]),
        scale * signed_quad(weights[at + 6u]), scale * signed_quad(weights[at + 7u]));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 4u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let at = start + chunk * 8u;
    return array<vec4<u32>, 3>(
        vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]),
        vec4<u32>(weights[at + 4u], weights[at + 5u], weights[at + 6u], weights[at + 7u]),
        bitcast<vec4<u32>>(vec4<f32>(scale, scale, 0.0, 0.0)));
}

fn signed_quad(word: u32) -> vec4<f32> {
    return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}
