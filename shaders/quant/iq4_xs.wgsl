// IQ4_XS: (d * (scale - 32)) * value(q). Layout: src/quant/iq4_xs.rs. Block of 8 chunks, 34 words: d and the high pairs
// of the scales; their low nibbles; 4 words of nibbles per chunk.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let block = row * ROW_WORDS + chunk / 8u * 34u;
    let index = chunk & 7u;
    let head = weights[block];
    let low = (weights[block + 1u] >> (4u * index)) & 15u;
    let high = ((head >> 16u) >> (2u * index)) & 3u;
    let s = unpack2x16float(head).x * (f32(low | (high << 4u)) - 32.0);
    let at = block + 2u + index * 4u;
    let a = weights[at];
    let b = weights[at + 1u];
    let c = weights[at + 2u];
    let d = weights[at + 3u];
    return array<vec4<f32>, 8>(
        s * value_quad(a), s * value_quad(b), s * value_quad(c), s * value_quad(d),
        s * value_quad(a >> 4u), s * value_quad(b >> 4u), s * value_quad(c >> 4u), s * value_quad(d >> 4u));
}

// The values of four low nibbles: a polynomial, rounded down; see src/quant/iq4_nl.rs.
fn value_quad(word: u32) -> vec4<f32> {
    let y = vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) - 8.0;
    return floor((((0.00158 * y + 0.0819) * y - 0.016) * y + 11.438) * y + 1.921);
}
