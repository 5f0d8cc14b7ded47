// IQ2_XS: ((d * (scale + 1/2)) / 4) * m, a scale per 16 weights. Layout: src/quant/iq2_xs.rs. Row: of every block of 8
// chunks 18 words (2 of scales, a nibble each; 2 per chunk: 4 times 9 bits of an octet and 7 signs), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let factor = unpack2x16float(weights[start + K / 256u * 18u + number / 2u] >> (16u * (number & 1u))).x;
    let block = start + number * 18u;
    let scales = vec2<u32>(weights[block + index / 4u] >> (8u * (index & 3u))) >> vec2<u32>(0u, 4u);
    let s = factor * (0.25 * vec2<f32>(scales & vec2<u32>(15u)) + 0.125);
    let first = weights[block + 2u + index * 2u];
    let second = weights[block + 3u + index * 2u];
    let a = octet(first & 511u);
    let b = octet((first >> 16u) & 511u);
    let c = octet(second & 511u);
    let d = octet((second >> 16u) & 511u);
    let e = eight_signs(first >> 9u);
    let f = eight_signs(first >> 25u);
    let g = eight_signs(second >> 9u);
    let h = eight_signs(second >> 25u);
    return array<vec4<f32>, 8>(
        s.x * signed_quad(a, e), s.x * signed_quad(a >> 8u, e >> 4u),
        s.x * signed_quad(b, f), s.x * signed_quad(b >> 8u, f >> 4u),
        s.y * signed_quad(c, g), s.y * signed_quad(c >> 8u, g >> 4u),
        s.y * signed_quad(d, h), s.y * signed_quad(d >> 8u, h >> 4u));
}

// A point of the codebook, which the buffer ends in: eight 2-bit digits, those of another point above them.
fn octet(index: u32) -> u32 {
    return weights[arrayLength(&weights) - 256u + index / 2u] >> (16u * (index & 1u));
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
