// IQ3_S: (d * (2 * scale + 1)) * m. Layout: src/quant/iq3_s.rs. Row: of every block of 8 chunks 27 words (1 of scales; 2 of
// the quads' ninth bits, a byte a chunk; 3 per chunk: 2 of quads, 1 of signs), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let factor = unpack2x16float(weights[start + K / 256u * 27u + number / 2u] >> (16u * (number & 1u))).x;
    let block = start + number * 27u;
    let s = factor * (2.0 * f32((weights[block] >> (4u * index)) & 15u) + 1.0);
    let h = weights[block + 1u + index / 4u] >> (8u * (index & 3u));
    let at = block + 3u + index * 3u;
    let a = weights[at];
    let b = weights[at + 1u];
    let signs = weights[at + 2u];
    return array<vec4<f32>, 8>(
        s * signed_quad((a & 255u) | ((h << 8u) & 256u), signs),
        s * signed_quad(((a >> 8u) & 255u) | ((h << 7u) & 256u), signs >> 4u),
        s * signed_quad(((a >> 16u) & 255u) | ((h << 6u) & 256u), signs >> 8u),
        s * signed_quad((a >> 24u) | ((h << 5u) & 256u), signs >> 12u),
        s * signed_quad((b & 255u) | ((h << 4u) & 256u), signs >> 16u),
        s * signed_quad(((b >> 8u) & 255u) | ((h << 3u) & 256u), signs >> 20u),
        s * signed_quad(((b >> 16u) & 255u) | ((h << 2u) & 256u), signs >> 24u),
        s * signed_quad((b >> 24u) | ((h << 1u) & 256u), signs >> 28u));
}

// Four weights from a point of the codebook, which the buffer ends in, and four signs.
fn signed_quad(index: u32, signs: u32) -> vec4<f32> {
    let bytes = vec4<u32>(weights[arrayLength(&weights) - 512u + index]) >> vec4<u32>(0u, 8u, 16u, 24u);
    let magnitude = vec4<f32>(bytes & vec4<u32>(255u));
    return select(magnitude, -magnitude, (vec4<u32>(signs) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u));
}
