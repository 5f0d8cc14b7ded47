// Q8_0: scale * q, q signed. Layout: src/quant/q8_0.rs. Row: 8 words per chunk, then the f16 scales.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 4u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let s = scale * vec4<f32>(1.0, 0x1p-8, 0x1p-16, 0x1p-24); // of a word's bytes
    let at = start + chunk * 8u;
    return array<vec4<f32>, 8>(
        s * signed_quad(weights[at]), s * signed_quad(weights[at + 1u]),
        s * signed_quad(weights[at + 2u]), s * signed_quad(weights[at + 3u]),
        s * signed_quad(weights[at + 4u]), s * signed_quad(weights[at + 5u]),
        s * signed_quad(weights[at + 6u]), s * signed_quad(weights[at + 7u]));
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

// The bytes of a word where they stand, as much too large as the scale of each is small there: adapters that compute on the CPU
// shift lane by lane. The highest byte has its sign there; the others are 128 too large until that is taken away.
fn signed_quad(word: u32) -> vec4<f32> {
    let bytes = vec4<i32>(bitcast<i32>(word ^ 0x808080u)) & vec4<i32>(0xff, 0xff00, 0xff0000, -0x1000000);
    return vec4<f32>(bytes) - vec4<f32>(0x1p7, 0x1p15, 0x1p23, 0.0);
}
