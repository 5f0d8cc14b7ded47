// Q6_K: (d * scale) * (q - 32), a scale per 16 weights. Layout: src/quant/q6_k.rs. Row: of every block of 8 chunks 52
// words (4 of signed 8-bit scales; 6 per chunk: 4 of nibbles, 2 of high pairs), then the f16 d's.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let block = start + number * 52u;
    let s = scales_of(start, number, index);
    let at = block + 4u + index * 6u;
    let a = weights[at];
    let b = weights[at + 1u];
    let c = weights[at + 2u];
    let d = weights[at + 3u];
    let p = weights[at + 4u];
    let q = weights[at + 5u];
    return array<vec4<f32>, 8>(
        s.x * centered_quad(a, p << 4u), s.x * centered_quad(b, p << 2u),
        s.x * centered_quad(c, p), s.x * centered_quad(d, p >> 2u),
        s.y * centered_quad(a >> 4u, q << 4u), s.y * centered_quad(b >> 4u, q << 2u),
        s.y * centered_quad(c >> 4u, q), s.y * centered_quad(d >> 4u, q >> 2u));
}

// The two scales of a chunk.
fn scales_of(start: u32, number: u32, index: u32) -> vec2<f32> {
    let factor = unpack2x16float(weights[start + K / 256u * 52u + number / 2u] >> (16u * (number & 1u))).x;
    let bytes = weights[start + number * 52u + index / 2u] >> (16u * (index & 1u));
    let scales = bitcast<vec2<i32>>(vec2<u32>(bytes) << vec2<u32>(24u, 16u));
    return factor * vec2<f32>(scales >> vec2<u32>(24u));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let start = row * ROW_WORDS;
    let number = chunk / 8u;
    let index = chunk & 7u;
    let block = start + number * 52u;
    let s = scales_of(start, number, index);
    let at = block + 4u + index * 6u;
    let nibbles = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let p = weights[at + 4u];
    let q = weights[at + 5u];
    let low = vec4<u32>(p << 4u, p << 2u, p, p >> 2u);
    let high = vec4<u32>(q << 4u, q << 2u, q, q >> 2u);
    return array<vec4<u32>, 3>(
        (nibbles & vec4<u32>(0x0f0f0f0fu)) | (low & vec4<u32>(0x30303030u)),
        ((nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (high & vec4<u32>(0x30303030u)),
        bitcast<vec4<u32>>(vec4<f32>(s, -32.0 * s)));
}

// Four weights less 32, from the low nibbles of one word and bits 4 and 5 of the other's bytes.
fn centered_quad(nibbles: u32, pairs: u32) -> vec4<f32> {
    return byte_quad((nibbles & 0x0f0f0f0fu) | (pairs & 0x30303030u)) - 32.0;
}

fn byte_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}
