// Q4_1: scale * q + minimum. Layout: src/quant/q4_1.rs. Chunk: 5 words (f16 scale and minimum; 4 words of nibbles).

// The 32 weights [row, 32 * chunk .. 32 * chunk + 32] as 8 quads.
fn load_chunk(row: u32, chunk: u32) -> array<vec4<f32>, 8> {
    let at = row * ROW_WORDS + chunk * 5u;
    let factors = unpack2x16float(weights[at]);
    let s = factors.x * vec4<f32>(1.0, 0x1p-8, 0x1p-16, 0x1p-24); // of a word's bytes
    let m = vec4<f32>(factors.y);
    let a = weights[at + 1u];
    let b = weights[at + 2u];
    let c = weights[at + 3u];
    let d = weights[at + 4u];
    return array<vec4<f32>, 8>(
        s * low_quad(a) + m, s * low_quad(b) + m, s * low_quad(c) + m, s * low_quad(d) + m,
        s * low_quad(a >> 4u) + m, s * low_quad(b >> 4u) + m, s * low_quad(c >> 4u) + m, s * low_quad(d >> 4u) + m);
}

// The same weights for integer products: two vectors of 16 signed bytes, then a scale and a minimum of each as f32 bits:
// scale * byte + minimum.
fn load_packed(row: u32, chunk: u32) -> array<vec4<u32>, 3> {
    let at = row * ROW_WORDS + chunk * 5u;
    let factors = unpack2x16float(weights[at]).xxyy;
    let nibbles = vec4<u32>(weights[at + 1u], weights[at + 2u], weights[at + 3u], weights[at + 4u]);
    return array<vec4<u32>, 3>(
        nibbles & vec4<u32>(0x0f0f0f0fu), (nibbles >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), bitcast<vec4<u32>>(factors));
}

// The low nibbles of a word's bytes where they stand, as much too large as the scale of each is small there:
// adapters that compute on the CPU shift lane by lane.
fn low_quad(word: u32) -> vec4<f32> {
    return vec4<f32>(vec4<i32>(bitcast<i32>(word)) & vec4<i32>(0xf, 0xf00, 0xf0000, 0xf000000));
}
