// IQ2_XXS: ((d * (scale + 1/2)) / 4) * m. Layout: src/quant/iq2_xxs.rs. Row: 2 words per chunk (4 octets; 4 times 7 signs
// and the scale), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let factor = unpack2x16float(weights[start + K / 16u + number / 2u] >> (16u * (number & 1u))).x;
    let indices = weights[start + chunk * 2u];
    let bits = weights[start + chunk * 2u + 1u];
    let s = factor * (0.25 * f32(bits >> 28u) + 0.125);
    let a = octet(indices & 255u);
    let b = octet((indices >> 8u) & 255u);
    let c = octet((indices >> 16u) & 255u);
    let d = octet(indices >> 24u);
    let e = eight_signs(bits);
    let f = eight_signs(bits >> 7u);
    let g = eight_signs(bits >> 14u);
    let h = eight_signs(bits >> 21u);
    return array<vec4<f32>, 8>(
        s * signed_quad(a, e), s * signed_quad(a >> 8u, e >> 4u),
        s * signed_quad(b, f), s * signed_quad(b >> 8u, f >> 4u),
        s * signed_quad(c, g), s * signed_quad(c >> 8u, g >> 4u),
        s * signed_quad(d, h), s * signed_quad(d >> 8u, h >> 4u));
}

// A point of the codebook, which the buffer ends in: eight 2-bit digits, those of another point above them.
fn octet(index: u32) -> u32 {
    return weights[arrayLength(&weights) - 128u + index / 2u] >> (16u * (index & 1u));
}

// Seven signs and an eighth that makes the number of minuses even.
fn eight_signs(bits: u32) -> u32 {
    let seven = bits & 127u;
    return seven | ((countOneBits(seven) & 1u) << 7u);
}

// Four weights from the low four 2-bit digits of an octet and four signs: 0, 1, 2 mean 8, 25, 43.
fn signed_quad(digits: u32, signs: u32) -> vec4<f32> {
    let digit = vec4<f32>((vec4<u32>(digits) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
    let magnitude = (0.5 * digit + 16.5) * digit + 8.0;
    return select(magnitude, -magnitude, (vec4<u32>(signs) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u));
}
