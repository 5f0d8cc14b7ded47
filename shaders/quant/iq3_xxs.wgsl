// IQ3_XXS: ((d * (scale + 1/2)) / 2) * m. Layout: src/quant/iq3_xxs.rs. Row: 3 words per chunk (8 quads; 4 times 7 signs
// and the scale), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let factor = unpack2x16float(weights[start + K / 32u * 3u + number / 2u] >> (16u * (number & 1u))).x;
    let at = start + chunk * 3u;
    let a = weights[at];
    let b = weights[at + 1u];
    let bits = weights[at + 2u];
    let s = factor * (0.5 * f32(bits >> 28u) + 0.25);
    let e = eight_signs(bits);
    let f = eight_signs(bits >> 7u);
    let g = eight_signs(bits >> 14u);
    let h = eight_signs(bits >> 21u);
    return array<vec4<f32>, 8>(
        s * signed_quad(a & 255u, e), s * signed_quad((a >> 8u) & 255u, e >> 4u),
        s * signed_quad((a >> 16u) & 255u, f), s * signed_quad(a >> 24u, f >> 4u),
        s * signed_quad(b & 255u, g), s * signed_quad((b >> 8u) & 255u, g >> 4u),
        s * signed_quad((b >> 16u) & 255u, h), s * signed_quad(b >> 24u, h >> 4u));
}

// Four weights from a point of the codebook, which the buffer ends in, and four signs.
fn signed_quad(index: u32, signs: u32) -> vec4<f32> {
    let bytes = vec4<u32>(weights[arrayLength(&weights) - 256u + index]) >> vec4<u32>(0u, 8u, 16u, 24u);
    let magnitude = vec4<f32>(bytes & vec4<u32>(255u));
    return select(magnitude, -magnitude, (vec4<u32>(signs) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u));
}

// Seven signs and an eighth that makes the number of minuses even.
fn eight_signs(bits: u32) -> u32 {
    let seven = bits & 127u;
    return seven | ((countOneBits(seven) & 1u) << 7u);
}
