// MXFP4: 2^(exponent - 128) * value(q). Layout: src/quant/mxfp4.rs. Row: 4 words per chunk, then the exponents, 4 a word.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let exponent = (weights[start + K / 8u + chunk / 4u] >> (8u * (chunk & 3u))) & 255u;
    // The two smallest are subnormal.
    let bits = select((exponent - 1u) << 23u, 0x00200000u << (exponent & 1u), exponent < 2u);
    let s = bitcast<f32>(bits);
    let at = start + chunk * 4u;
    let a = weights[at];
    let b = weights[at + 1u];
    let c = weights[at + 2u];
    let d = weights[at + 3u];
    return array<vec4<f32>, 8>(
        s * value_quad(a), s * value_quad(b), s * value_quad(c), s * value_quad(d),
        s * value_quad(a >> 4u), s * value_quad(b >> 4u), s * value_quad(c >> 4u), s * value_quad(d >> 4u));
}

// The values of four low nibbles: a sign, and the magnitudes 0, 1, 2, 3, 4, 6, 8, 12, the nibbles of a constant.
fn value_quad(word: u32) -> vec4<f32> {
    let q = vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u);
    let magnitude = vec4<i32>((vec4<u32>(0xC8643210u) >> ((q & vec4<u32>(7u)) * 4u)) & vec4<u32>(15u));
    return vec4<f32>(select(magnitude, -magnitude, (q & vec4<u32>(8u)) != vec4<u32>(0u)));
}
