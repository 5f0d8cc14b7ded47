// IQ1_S: (d * (2 * scale + 1)) * (t + delta). Layout: src/quant/iq1_s.rs. Row: of every block of 8 chunks 12 words (8 of
// the octets' low bits; 4 of 16 bits a chunk: high bits, scale, sign of delta), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let factor = unpack2x16float(weights[start + K / 256u * 12u + number / 2u] >> (16u * (number & 1u))).x;
    let block = start + number * 12u;
    let low = weights[block + index];
    let bits = weights[block + 8u + index / 2u] >> (16u * (index & 1u));
    let s = factor * (2.0 * f32((bits >> 12u) & 7u) + 1.0);
    // A digit is t + 1.
    let m = select(-0.875, -1.125, (bits & 0x8000u) != 0u);
    let a = octet((low & 255u) | ((bits << 8u) & 0x700u));
    let b = octet(((low >> 8u) & 255u) | ((bits << 5u) & 0x700u));
    let c = octet(((low >> 16u) & 255u) | ((bits << 2u) & 0x700u));
    let d = octet((low >> 24u) | ((bits >> 1u) & 0x700u));
    return array<vec4<f32>, 8>(
        s * (digit_quad(a) + m), s * (digit_quad(a >> 8u) + m), s * (digit_quad(b) + m), s * (digit_quad(b >> 8u) + m),
        s * (digit_quad(c) + m), s * (digit_quad(c >> 8u) + m), s * (digit_quad(d) + m), s * (digit_quad(d >> 8u) + m));
}

// A point of the codebook, which the buffer ends in: eight 2-bit digits, those of another point above them.
fn octet(index: u32) -> u32 {
    return weights[arrayLength(&weights) - 1024u + index / 2u] >> (16u * (index & 1u));
}

fn digit_quad(digits: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(digits) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}
