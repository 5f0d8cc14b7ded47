// IQ4_NL: scale * value(q). Layout: src/quant/iq4_nl.rs. Row: 4 words per chunk, then the f16 scales.

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
        scale * value_quad(a), scale * value_quad(b), scale * value_quad(c), scale * value_quad(d),
        scale * value_quad(a >> 4u), scale * value_quad(b >> 4u),
        scale * value_quad(c >> 4u), scale * value_quad(d >> 4u));
}

// The values of four low nibbles: a polynomial, rounded down; see src/quant/iq4_nl.rs.
fn value_quad(word: u32) -> vec4<f32> {
    let y = vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) - 8.0;
    return floor((((0.00158 * y + 0.0819) * y - 0.016) * y + 11.438) * y + 1.921);
}
