// Q5_0: scale * (q - 16). Layout: src/quant/q5_0.rs. Row: 5 words per chunk (fifth bits; 4 words of nibbles), then the
// f16 scales.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 32u * 5u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let at = start + chunk * 5u;
    let fifth = weights[at];
    let a = weights[at + 1u];
    let b = weights[at + 2u];
    let c = weights[at + 3u];
    let d = weights[at + 4u];
    return array<vec4<f32>, 8>(
        scale * centered_quad(a, fifth << 4u), scale * centered_quad(b, fifth << 3u),
        scale * centered_quad(c, fifth << 2u), scale * centered_quad(d, fifth << 1u),
        scale * centered_quad(a >> 4u, fifth), scale * centered_quad(b >> 4u, fifth >> 1u),
        scale * centered_quad(c >> 4u, fifth >> 2u), scale * centered_quad(d >> 4u, fifth >> 3u));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 32u * 5u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let factors = scale * vec4<f32>(1.0, 1.0, -16.0, -16.0);
    let at = start + chunk * 5u;
    let fifth = weights[at];
    let nibbles = vec4<u32>(weights[at + 1u], weights[at + 2u], weights[at + 3u], weights[at + 4u]);
    let low = vec4<u32>(fifth) << vec4<u32>(4u, 3u, 2u, 1u);
    let high = vec4<u32>(fifth) >> vec4<u32>(0u, 1u, 2u, 3u);
    return array<vec4<u32>, 3>(
        (nibbles & vec4<u32>(0x0f0f0f0fu)) | (low & vec4<u32>(0x10101010u)),
        ((nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (high & vec4<u32>(0x10101010u)),
        bitcast<vec4<u32>>(factors));
}

// Four weights less 16, from the low nibbles of one word and bit 4 of the other's bytes.
fn centered_quad(nibbles: u32, fifth: u32) -> vec4<f32> {
    return byte_quad((nibbles & 0x0f0f0f0fu) | (fifth & 0x10101010u)) - 16.0;
}

fn byte_quad(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}
