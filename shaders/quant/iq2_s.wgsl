// IQ2_S: ((d * (scale + 1/2)) / 4) * m, a scale per 16 weights. Layout: src/quant/iq2_s.rs. Row: of every block of 8
// chunks 20 words (4 of 16 bits a chunk: scales, high pairs of the octets; 2 per chunk: octets, signs), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let factor = unpack2x16float(weights[start + K / 256u * 20u + number / 2u] >> (16u * (number & 1u))).x;
    let block = start + number * 20u;
    let head = weights[block + index / 2u] >> (16u * (index & 1u));
    let s = factor * (0.25 * vec2<f32>((vec2<u32>(head) >> vec2<u32>(0u, 4u)) & vec2<u32>(15u)) + 0.125);
    let low = weights[block + 4u + index * 2u];
    let signs = weights[block + 5u + index * 2u];
    let a = octet((low & 255u) | (head & 0x300u));
    let b = octet(((low >> 8u) & 255u) | ((head >> 2u) & 0x300u));
    let c = octet(((low >> 16u) & 255u) | ((head >> 4u) & 0x300u));
    let d = octet((low >> 24u) | ((head >> 6u) & 0x300u));
    return array<vec4<f32>, 8>(
        s.x * signed_quad(a, signs), s.x * signed_quad(a >> 8u, signs >> 4u),
        s.x * signed_quad(b, signs >> 8u), s.x * signed_quad(b >> 8u, signs >> 12u),
        s.y * signed_quad(c, signs >> 16u), s.y * signed_quad(c >> 8u, signs >> 20u),
        s.y * signed_quad(d, signs >> 24u), s.y * signed_quad(d >> 8u, signs >> 28u));
}

// A point of the codebook, which the buffer ends in: eight 2-bit digits, those of another point above them.
fn octet(index: u32) -> u32 {
    return weights[arrayLength(&weights) - 512u + index / 2u] >> (16u * (index & 1u));
}

// Four weights from the low four 2-bit digits of an octet and four signs: 0, 1, 2 mean 8, 25, 43.
fn signed_quad(digits: u32, signs: u32) -> vec4<f32> {
    let digit = vec4<f32>((vec4<u32>(digits) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
    let magnitude = (0.5 * digit + 16.5) * digit + 8.0;
    return select(magnitude, -magnitude, (vec4<u32>(signs) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u));
}
