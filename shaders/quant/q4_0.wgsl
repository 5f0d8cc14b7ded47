// Q4_0: scale * (q - 8). Layout: src/quant/q4_0.rs. Row: 4 words per chunk, then the f16 scales.

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 8u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let s = scale * vec4<f32>(1.0, 0x1p-8, 0x1p-16, 0x1p-24); // of a word's bytes
    let at = start + chunk * 4u;
    let a = weights[at];
    let b = weights[at + 1u];
    let c = weights[at + 2u];
    let d = weights[at + 3u];
    return array<vec4<f32>, 8>(
        s * low_quad(a), s * low_quad(b), s * low_quad(c), s * low_quad(d),
        s * low_quad(a >> 4u), s * low_quad(b >> 4u), s * low_quad(c >> 4u), s * low_quad(d >> 4u));
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let start = row * ROW_WORDS;
    let scale = unpack2x16float(weights[start + K / 8u + chunk / 2u] >> (16u * (chunk & 1u))).x;
    let at = start + chunk * 4u;
    let nibbles = vec4<u32>(weights[at], weights[at + 1u], weights[at + 2u], weights[at + 3u]);
    let factors = scale * vec4<f32>(1.0, 1.0, -8.0, -8.0);
    return array<vec4<u32>, 3>(
        nibbles & vec4<u32>(0x0f0f0f0fu), (nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), bitcast<vec4<u32>>(factors));
}

// The low nibbles of a word's bytes, less 8, where they stand, as much too large as the scale of each is small there: adapters
// that compute on the CPU shift lane by lane.
fn low_quad(word: u32) -> vec4<f32> {
    let nibbles = vec4<i32>(bitcast<i32>(word)) & vec4<i32>(0xf, 0xf00, 0xf0000, 0xf000000);
    return vec4<f32>(nibbles) - vec4<f32>(0x1p3, 0x1p11, 0x1p19, 0x1p27);
}
