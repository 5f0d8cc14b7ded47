// Q3_K: (d * (scale - 32)) * (q - 4), a scale per 16 weights. Layout: src/quant/q3_k.rs. Row: of every block of 8 chunks
// 27 words (2 of low nibbles and 1 of high pairs of the scales; 3 per chunk: high bits, 2 of pairs), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let block = start + number * 27u;
    let s = scales_of(start, number, index);
    let at = block + 3u + index * 3u;
    let h = weights[at];
    let a = weights[at + 1u];
    let b = weights[at + 2u];
    return array<vec4<f32>, 8>(
        s.x * centered_quad(a, h << 2u), s.x * centered_quad(a >> 2u, h << 1u),
        s.x * centered_quad(a >> 4u, h), s.x * centered_quad(a >> 6u, h >> 1u),
        s.y * centered_quad(b, h >> 2u), s.y * centered_quad(b >> 2u, h >> 3u),
        s.y * centered_quad(b >> 4u, h >> 4u), s.y * centered_quad(b >> 6u, h >> 5u));
}

// The two scales of a chunk.
fn scales_of(start: u32, number: u32, index: u32) -> vec2<f32> {
    let factor = unpack2x16float(weights[start + K / 256u * 27u + number / 2u] >> (16u * (number & 1u))).x;
    let block = start + number * 27u;
    let low = vec2<u32>(weights[block + index / 4u] >> (8u * (index & 3u))) >> vec2<u32>(0u, 4u);
    let high = vec2<u32>(weights[block + 2u] >> (4u * index)) >> vec2<u32>(0u, 2u);
    let scales = (low & vec2<u32>(15u)) | ((high & vec2<u32>(3u)) << vec2<u32>(4u));
    return factor * (vec2<f32>(scales) - 32.0);
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let block = start + number * 27u;
    let s = scales_of(start, number, index);
    let at = block + 3u + index * 3u;
    let h = weights[at];
    let low = (vec4<u32>(weights[at + 1u]) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(0x03030303u);
    let high = (vec4<u32>(weights[at + 2u]) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(0x03030303u);
    return array<vec4<u32>, 3>(
        low | (vec4<u32>(h << 2u, h << 1u, h, h >> 1u) & vec4<u32>(0x04040404u)),
        high | ((vec4<u32>(h) >> vec4<u32>(2u, 3u, 4u, 5u)) & vec4<u32>(0x04040404u)),
        bitcast<vec4<u32>>(vec4<f32>(s, -4.0 * s)));
}

// Four weights less 4, from the low pairs of one word's bytes and bit 2 of the other's.
fn centered_quad(pairs: u32, high: u32) -> vec4<f32> {
    let bytes = (pairs & 0x03030303u) | (high & 0x04040404u);
    return vec4<f32>((vec4<u32>(bytes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)) - 4.0;
}
