// Q5_K: (d * scale) * q - (dmin * minimum). Layout: src/quant/q5_k.rs. Block of 8 chunks, 44 words: d and dmin; 3 words
// of scales and minimums; 5 words per chunk (fifth bits; 4 words of nibbles).

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let block = row * ROW_WORDS + chunk / 8u * 44u;
    let index = chunk & 7u;
    let factors = factors_of(block, index);
    let s = factors.x;
    let m = vec4<f32>(factors.y);
    let at = block + 4u + index * 5u;
    let fifth = weights[at];
    let a = weights[at + 1u];
    let b = weights[at + 2u];
    let c = weights[at + 3u];
    let d = weights[at + 4u];
    return array<vec4<f32>, 8>(
        s * five_bit_quad(a, fifth << 4u) - m, s * five_bit_quad(b, fifth << 3u) - m,
        s * five_bit_quad(c, fifth << 2u) - m, s * five_bit_quad(d, fifth << 1u) - m,
        s * five_bit_quad(a >> 4u, fifth) - m, s * five_bit_quad(b >> 4u, fifth >> 1u) - m,
        s * five_bit_quad(c >> 4u, fifth >> 2u) - m, s * five_bit_quad(d >> 4u, fifth >> 3u) - m);
}

// The scale and the minimum of a chunk.
fn factors_of(block: u32, index: u32) -> vec2<f32> {
    let shift = 4u * index;
    let high = weights[block + 3u] >> shift;
    let scale = ((weights[block + 1u] >> shift) & 15u) | ((high & 3u) << 4u);
    let minimum = ((weights[block + 2u] >> shift) & 15u) | ((high & 12u) << 2u);
    return unpack2x16float(weights[block]) * vec2<f32>(vec2<u32>(scale, minimum));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let block = row * ROW_WORDS + chunk / 8u * 44u;
    let index = chunk & 7u;
    let factors = factors_of(block, index).xxyy * vec4<f32>(1.0, 1.0, -1.0, -1.0);
    let at = block + 4u + index * 5u;
    let fifth = weights[at];
    let nibbles = vec4<u32>(weights[at + 1u], weights[at + 2u], weights[at + 3u], weights[at + 4u]);
    let low = vec4<u32>(fifth) << vec4<u32>(4u, 3u, 2u, 1u);
    let high = vec4<u32>(fifth) >> vec4<u32>(0u, 1u, 2u, 3u);
    return array<vec4<u32>, 3>(
        (nibbles & vec4<u32>(0x0f0f0f0fu)) | (low & vec4<u32>(0x10101010u)),
        ((nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (high & vec4<u32>(0x10101010u)),
        bitcast<vec4<u32>>(factors));
}

// Four weights from the low nibbles of one word and bit 4 of the other's bytes.
fn five_bit_quad(nibbles: u32, fifth: u32) -> vec4<f32> {
    return byte_quad((nibbles & 0x0f0f0f0fu) | (fifth & 0x10101010u));
}

fn byte_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}
