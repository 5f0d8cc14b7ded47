// IQ1_M: (d * (2 * scale + 1)) * (t + delta), a scale per 16 weights, a delta per 8. Layout: src/quant/iq1_m.rs. Block of
// 8 chunks, 14 words: 8 of the octets' low bits; 4 of their high bits and delta's sign, a nibble each; 2 of 16 bits per
// two chunks: 4 scales and a nibble of d.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let block = row * ROW_WORDS + chunk / 8u * 14u;
    let index = chunk & 7u;
    let low = weights[block + index];
    let bits = weights[block + 8u + index / 2u] >> (16u * (index & 1u));
    let first = weights[block + 12u];
    let second = weights[block + 13u];
    let factor = unpack2x16float(((first >> 12u) & 0xFu) | ((first >> 24u) & 0xF0u)
        | ((second >> 4u) & 0xF00u) | ((second >> 16u) & 0xF000u)).x;
    let scales = vec2<u32>(select(first, second, index >= 4u) >> (16u * ((index / 2u) & 1u) + 6u * (index & 1u)));
    let s = factor * (2.0 * vec2<f32>((scales >> vec2<u32>(0u, 3u)) & vec2<u32>(7u)) + 1.0);
    // A digit is t + 1.
    let is_down = (vec4<u32>(bits) & vec4<u32>(0x8u, 0x80u, 0x800u, 0x8000u)) != vec4<u32>(0u);
    let m = select(vec4<f32>(-0.875), vec4<f32>(-1.125), is_down);
    let a = octet((low & 255u) | ((bits << 8u) & 0x700u));
    let b = octet(((low >> 8u) & 255u) | ((bits << 4u) & 0x700u));
    let c = octet(((low >> 16u) & 255u) | (bits & 0x700u));
    let d = octet((low >> 24u) | ((bits >> 4u) & 0x700u));
    return array<vec4<f32>, 8>(
        s.x * (digit_quad(a) + m.x), s.x * (digit_quad(a >> 8u) + m.x),
        s.x * (digit_quad(b) + m.y), s.x * (digit_quad(b >> 8u) + m.y),
        s.y * (digit_quad(c) + m.z), s.y * (digit_quad(c >> 8u) + m.z),
        s.y * (digit_quad(d) + m.w), s.y * (digit_quad(d >> 8u) + m.w));
}

// A point of the codebook, which the buffer ends in: eight 2-bit digits, those of another point above them.
fn octet(index: u32) -> u32 {
    return weights[arrayLength(&weights) - 1024u + index / 2u] >> (16u * (index & 1u));
}

fn digit_quad(digits: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(digits) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u));
}
